// CUDA's driver functions for the device, contexts, memory, streams and events, by those of the runtime. Modules,
// functions and launches (cuModuleLoad, cuLaunchKernel, …) are refused by name: they need a GPU's machine code.
#pragma once

#include <string.h>

#include <vector>

#include <simt/cuda.h>

#ifndef CUDA_VERSION
#define CUDA_VERSION 13000
#endif

// clang-format off: a table, one error a line: its number, name and text
#define SIMT_DRIVER_ERRORS(each) \
  each(0, CUDA_SUCCESS, "no error") \
  each(1, CUDA_ERROR_INVALID_VALUE, "invalid argument") \
  each(2, CUDA_ERROR_OUT_OF_MEMORY, "out of memory") \
  each(3, CUDA_ERROR_NOT_INITIALIZED, "initialization error") \
  each(4, CUDA_ERROR_DEINITIALIZED, "driver shutting down") \
  each(100, CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected") \
  each(101, CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal") \
  each(200, CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid") \
  each(201, CUDA_ERROR_INVALID_CONTEXT, "invalid device context") \
  each(400, CUDA_ERROR_INVALID_HANDLE, "invalid resource handle") \
  each(401, CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state") \
  each(500, CUDA_ERROR_NOT_FOUND, "named symbol not found") \
  each(600, CUDA_ERROR_NOT_READY, "device not ready") \
  each(700, CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered") \
  each(701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch") \
  each(702, CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated") \
  each(709, CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed") \
  each(716, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address") \
  each(719, CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure") \
  each(800, CUDA_ERROR_NOT_PERMITTED, "operation not permitted") \
  each(801, CUDA_ERROR_NOT_SUPPORTED, "operation not supported") \
  each(900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing") \
  each(901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture") \
  each(999, CUDA_ERROR_UNKNOWN, "unknown error")

#define SIMT_ENUMERATOR(code, name, text) name = code,
typedef enum cudaError_enum { SIMT_DRIVER_ERRORS(SIMT_ENUMERATOR) } CUresult;
#undef SIMT_ENUMERATOR

// The attributes have the numbers of the runtime's.
typedef enum CUdevice_attribute_enum {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
  CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
  CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
  CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
  CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17,
  CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
  CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
  CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20,
  CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT = 30,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
  CU_DEVICE_ATTRIBUTE_ECC_ENABLED = 32,
  CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
  CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID = 34,
  CU_DEVICE_ATTRIBUTE_TCC_DRIVER = 35,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
  CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
  CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID = 50,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
  CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
  CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
  CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
} CUdevice_attribute;

enum CUstream_flags_enum { CU_STREAM_DEFAULT = 0, CU_STREAM_NON_BLOCKING = 1 };
enum CUevent_flags_enum { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING_SYNC = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum CUctx_flags_enum {
  CU_CTX_SCHED_AUTO = 0,
  CU_CTX_SCHED_SPIN = 1,
  CU_CTX_SCHED_YIELD = 2,
  CU_CTX_SCHED_BLOCKING_SYNC = 4,
  CU_CTX_MAP_HOST = 8,
};
enum CUmemAttach_flags_enum { CU_MEM_ATTACH_GLOBAL = 1, CU_MEM_ATTACH_HOST = 2 };
#define CU_MEMHOSTALLOC_PORTABLE 1
#define CU_MEMHOSTALLOC_DEVICEMAP 2
#define CU_MEMHOSTALLOC_WRITECOMBINED 4
// clang-format on

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef cudaHostFn_t CUhostFn;
typedef struct CUctx_st {
  unsigned flags;
}* CUcontext;
struct CUctxCreateParams;  // CUDA 13's cuCtxCreate takes one; programs pass null

namespace simt {
inline CUctx_st primary_context{};
inline thread_local std::vector<CUcontext> contexts;  // the current one is the last

// Returns the driver's error for the runtime's. The runtime's last error stays as it is, as on a GPU.
inline CUresult as_driver(cudaError_t error) {
  if (error == cudaSuccess) return CUDA_SUCCESS;
  take_error();
  switch ((int)error) {
#define SIMT_CASE(code, name, text) \
  case code: return name;
    SIMT_DRIVER_ERRORS(SIMT_CASE)
#undef SIMT_CASE
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
inline CUresult check_device(CUdevice device) { return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE; }
}  // namespace simt

inline CUresult cuGetErrorName(CUresult error, const char** text) {
  *text = nullptr;
  switch (error) {
#define SIMT_CASE(code, name, sentence) \
  case code: *text = #name; break;
    SIMT_DRIVER_ERRORS(SIMT_CASE)
#undef SIMT_CASE
  }
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
inline CUresult cuGetErrorString(CUresult error, const char** text) {
  *text = nullptr;
  switch (error) {
#define SIMT_CASE(code, name, sentence) \
  case code: *text = sentence; break;
    SIMT_DRIVER_ERRORS(SIMT_CASE)
#undef SIMT_CASE
  }
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
#undef SIMT_DRIVER_ERRORS

// ---- the device ----

inline CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
inline CUresult cuDriverGetVersion(int* version) { return simt::as_driver(cudaDriverGetVersion(version)); }
inline CUresult cuDeviceGetCount(int* count) { return simt::as_driver(cudaGetDeviceCount(count)); }
inline CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = 0;
  return simt::check_device(ordinal);
}
inline CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  if (length < 1) return CUDA_ERROR_INVALID_VALUE;
  ::strncpy(name, simt::device().name, (size_t)length);
  name[length - 1] = 0;
  return simt::check_device(device);
}
inline CUresult cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  *bytes = (size_t)simt::device().global_bytes;
  return simt::check_device(device);
}
inline CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (simt::check_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  return simt::as_driver(cudaDeviceGetAttribute(value, (cudaDeviceAttr)attribute, device));
}

// ---- contexts: they hold nothing here ----

inline CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  if (simt::check_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  simt::contexts.push_back(*context = new CUctx_st{flags});
  return CUDA_SUCCESS;
}
inline CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams*, unsigned flags, CUdevice device) {
  return cuCtxCreate(context, flags, device);
}
inline CUresult cuCtxDestroy(CUcontext context) {
  if (!context || context == &simt::primary_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!simt::contexts.empty() && simt::contexts.back() == context) simt::contexts.pop_back();
  delete context;
  return CUDA_SUCCESS;
}
inline CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = simt::contexts.empty() ? nullptr : simt::contexts.back();
  return CUDA_SUCCESS;
}
inline CUresult cuCtxSetCurrent(CUcontext context) {
  if (!simt::contexts.empty()) simt::contexts.pop_back();
  if (context) simt::contexts.push_back(context);
  return CUDA_SUCCESS;
}
inline CUresult cuCtxPushCurrent(CUcontext context) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  simt::contexts.push_back(context);
  return CUDA_SUCCESS;
}
inline CUresult cuCtxPopCurrent(CUcontext* context) {
  if (simt::contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = simt::contexts.back();
  simt::contexts.pop_back();
  return CUDA_SUCCESS;
}
inline CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return simt::contexts.empty() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
inline CUresult cuCtxSynchronize() { return simt::as_driver(cudaDeviceSynchronize()); }
inline CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = &simt::primary_context;
  return simt::check_device(device);
}
inline CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return simt::check_device(device); }
inline CUresult cuDevicePrimaryCtxReset(CUdevice device) { return simt::check_device(device); }

// ---- memory: the same as the runtime's, so both work on one pointer ----

SIMT_INLINE CUresult cuMemAlloc(CUdeviceptr* pointer, size_t bytes) {
  return bytes ? simt::as_driver(cudaMalloc((void**)pointer, bytes)) : CUDA_ERROR_INVALID_VALUE;
}
SIMT_INLINE CUresult cuMemAllocPitch(CUdeviceptr* pointer, size_t* pitch, size_t width, size_t height, unsigned) {
  return simt::as_driver(cudaMallocPitch((void**)pointer, pitch, width, height));
}
SIMT_INLINE CUresult cuMemAllocManaged(CUdeviceptr* pointer, size_t bytes, unsigned) {
  return bytes ? simt::as_driver(cudaMallocManaged((void**)pointer, bytes)) : CUDA_ERROR_INVALID_VALUE;
}
SIMT_INLINE CUresult cuMemAllocHost(void** pointer, size_t bytes) {
  return simt::as_driver(cudaMallocHost(pointer, bytes));
}
SIMT_INLINE CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned) {
  return simt::as_driver(cudaMallocHost(pointer, bytes));
}
inline CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned) {
  *device = (CUdeviceptr)host;
  return CUDA_SUCCESS;
}
inline CUresult cuMemFree(CUdeviceptr pointer) { return simt::as_driver(cudaFree((void*)pointer)); }
inline CUresult cuMemFreeHost(void* pointer) { return simt::as_driver(cudaFreeHost(pointer)); }
inline CUresult cuMemGetInfo(size_t* free, size_t* total) { return simt::as_driver(cudaMemGetInfo(free, total)); }

SIMT_INLINE CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return simt::as_driver(cudaMemcpy((void*)target, (const void*)source, bytes, cudaMemcpyDefault));
}
SIMT_INLINE CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, size_t bytes) {
  return simt::as_driver(cudaMemcpy((void*)target, source, bytes, cudaMemcpyHostToDevice));
}
SIMT_INLINE CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, size_t bytes) {
  return simt::as_driver(cudaMemcpy(target, (const void*)source, bytes, cudaMemcpyDeviceToHost));
}
SIMT_INLINE CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t bytes) {
  return simt::as_driver(cudaMemcpy((void*)target, (const void*)source, bytes, cudaMemcpyDeviceToDevice));
}
SIMT_INLINE CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, size_t bytes, CUstream stream) {
  return simt::as_driver(cudaMemcpyAsync((void*)target, source, bytes, cudaMemcpyHostToDevice, stream));
}
SIMT_INLINE CUresult cuMemcpyDtoHAsync(void* target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return simt::as_driver(cudaMemcpyAsync(target, (const void*)source, bytes, cudaMemcpyDeviceToHost, stream));
}
SIMT_INLINE CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream) {
  return simt::as_driver(cudaMemcpyAsync((void*)target, (const void*)source, bytes, cudaMemcpyDeviceToDevice, stream));
}

namespace simt {
// Sets `count` elements of T, by a copy from the host where the bytes of the value differ.
template <class T>
SIMT_INLINE CUresult fill(CUdeviceptr target, T value, size_t count, CUstream stream) {
  if (target % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  unsigned char first = 0;
  bool same = true;
  for (size_t i = 0; i < sizeof(T); ++i) {
    const unsigned char byte = ((const unsigned char*)&value)[i];
    first = i ? first : byte;
    same = same && byte == first;
  }
  if (same) return as_driver(cudaMemsetAsync((void*)target, first, count * sizeof(T), stream));
  if (capture_of(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const std::vector<T> values(count, value);
  return as_driver(cudaMemcpy((void*)target, values.data(), count * sizeof(T), cudaMemcpyHostToDevice));
}
}  // namespace simt
SIMT_INLINE CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, size_t count) {
  return simt::fill(target, value, count, nullptr);
}
SIMT_INLINE CUresult cuMemsetD16(CUdeviceptr target, unsigned short value, size_t count) {
  return simt::fill(target, value, count, nullptr);
}
SIMT_INLINE CUresult cuMemsetD32(CUdeviceptr target, unsigned value, size_t count) {
  return simt::fill(target, value, count, nullptr);
}
SIMT_INLINE CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream) {
  return simt::fill(target, value, count, stream);
}
SIMT_INLINE CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, size_t count, CUstream stream) {
  return simt::fill(target, value, count, stream);
}
SIMT_INLINE CUresult cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t count, CUstream stream) {
  return simt::fill(target, value, count, stream);
}

// ---- streams and events: the runtime's ----

inline CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return simt::as_driver(cudaStreamCreateWithFlags(stream, flags));
}
inline CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return simt::as_driver(cudaStreamCreateWithPriority(stream, flags, priority));
}
inline CUresult cuStreamDestroy(CUstream stream) { return simt::as_driver(cudaStreamDestroy(stream)); }
inline CUresult cuStreamSynchronize(CUstream stream) { return simt::as_driver(cudaStreamSynchronize(stream)); }
inline CUresult cuStreamQuery(CUstream stream) { return simt::as_driver(cudaStreamQuery(stream)); }
inline CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return simt::as_driver(cudaStreamWaitEvent(stream, event, flags));
}
inline CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return simt::as_driver(cudaLaunchHostFunc(stream, function, data));
}
inline CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return simt::as_driver(cudaEventCreateWithFlags(event, flags));
}
inline CUresult cuEventDestroy(CUevent event) { return simt::as_driver(cudaEventDestroy(event)); }
inline CUresult cuEventRecord(CUevent event, CUstream stream) {
  return simt::as_driver(cudaEventRecord(event, stream));
}
inline CUresult cuEventSynchronize(CUevent event) { return simt::as_driver(cudaEventSynchronize(event)); }
inline CUresult cuEventQuery(CUevent event) { return simt::as_driver(cudaEventQuery(event)); }
inline CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return simt::as_driver(cudaEventElapsedTime(milliseconds, start, end));
}
