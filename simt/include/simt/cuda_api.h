// CUDA's host functions: errors, memory, streams, events, properties of the device that is played, launches by pointer.
// Everything is done when a call returns, so streams and events only keep time.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <simt/host.h>
#include <simt/runtime.h>

#define CUDART_VERSION 13000
// By these, headers find out that CUDA's are included.
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__

// ---- errors: number, name, what CUDA says ----

#define SIMT_CUDA_ERRORS(each)                                                                         \
  each(0, cudaSuccess, "no error")                                                                     \
  each(1, cudaErrorInvalidValue, "invalid argument")                                                   \
  each(2, cudaErrorMemoryAllocation, "out of memory")                                                  \
  each(3, cudaErrorInitializationError, "initialization error")                                        \
  each(4, cudaErrorCudartUnloading, "driver shutting down")                                            \
  each(9, cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
  each(12, cudaErrorInvalidPitchValue, "invalid pitch argument")                                       \
  each(13, cudaErrorInvalidSymbol, "invalid device symbol")                                            \
  each(17, cudaErrorInvalidDevicePointer, "invalid device pointer")                                    \
  each(21, cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                       \
  each(35, cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
  each(52, cudaErrorMissingConfiguration, "__global__ function call is not configured")                \
  each(98, cudaErrorInvalidDeviceFunction, "invalid device function")                                  \
  each(100, cudaErrorNoDevice, "no CUDA-capable device is detected")                                   \
  each(101, cudaErrorInvalidDevice, "invalid device ordinal")                                          \
  each(200, cudaErrorInvalidKernelImage, "device kernel image is invalid")                             \
  each(201, cudaErrorDeviceUninitialized, "invalid device context")                                    \
  each(209, cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
  each(214, cudaErrorECCUncorrectable, "uncorrectable ECC error encountered")                          \
  each(218, cudaErrorInvalidPtx, "a PTX JIT compilation failed")                                       \
  each(304, cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS")          \
  each(400, cudaErrorInvalidResourceHandle, "invalid resource handle")                                 \
  each(401, cudaErrorIllegalState, "the operation cannot be performed in the present state")           \
  each(500, cudaErrorSymbolNotFound, "named symbol not found")                                         \
  each(600, cudaErrorNotReady, "device not ready")                                                     \
  each(700, cudaErrorIllegalAddress, "an illegal memory access was encountered")                       \
  each(701, cudaErrorLaunchOutOfResources, "too many resources requested for launch")                  \
  each(702, cudaErrorLaunchTimeout, "the launch timed out and was terminated")                         \
  each(704, cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                       \
  each(705, cudaErrorPeerAccessNotEnabled, "peer access has not been enabled")                         \
  each(709, cudaErrorContextIsDestroyed, "context is destroyed")                                       \
  each(710, cudaErrorAssert, "device-side assert triggered")                                           \
  each(714, cudaErrorHardwareStackError, "hardware stack error")                                       \
  each(715, cudaErrorIllegalInstruction, "an illegal instruction was encountered")                     \
  each(716, cudaErrorMisalignedAddress, "misaligned address")                                          \
  each(717, cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space")    \
  each(718, cudaErrorInvalidPc, "invalid program counter")                                             \
  each(719, cudaErrorLaunchFailure, "unspecified launch failure")                                      \
  each(720, cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch")               \
  each(800, cudaErrorNotPermitted, "operation not permitted")                                          \
  each(801, cudaErrorNotSupported, "operation not supported")                                          \
  each(802, cudaErrorSystemNotReady, "system not yet initialized")                                     \
  each(999, cudaErrorUnknown, "unknown error")

#define SIMT_ENUMERATOR(code, name, text) name = code,
typedef enum cudaError { SIMT_CUDA_ERRORS(SIMT_ENUMERATOR) } cudaError_t;
#undef SIMT_ENUMERATOR

inline const char* cudaGetErrorString(cudaError_t error) {
  switch ((int)error) {
#define SIMT_CASE(code, name, text) case code: return text;
    SIMT_CUDA_ERRORS(SIMT_CASE)
#undef SIMT_CASE
    default: return "unrecognized error code";
  }
}
inline const char* cudaGetErrorName(cudaError_t error) {
  switch ((int)error) {
#define SIMT_CASE(code, name, text) case code: return #name;
    SIMT_CUDA_ERRORS(SIMT_CASE)
#undef SIMT_CASE
    default: return "unrecognized error code";
  }
}
#undef SIMT_CUDA_ERRORS

inline cudaError_t cudaGetLastError() { return (cudaError_t)simt::take_error(); }
inline cudaError_t cudaPeekAtLastError() { return (cudaError_t)simt::peek_error(); }

namespace simt {
inline cudaError_t failed(cudaError_t error, const char* text) {
  set_error(error, text);
  return error;
}
#ifdef SIMT_CHECK
// In a checked build this follows, after a comma, a call whose result the program drops.
struct Dropped {
  const char* call;
  const char* file;
  int line;
  Dropped(const char* call, const char* file = __builtin_FILE(), int line = __builtin_LINE()) : call(call), file(file), line(line) {}
};
inline void operator,(cudaError_t error, const Dropped& by) {
  if (error != cudaSuccess && error != cudaErrorNotReady) drop_error(by.call, error, cudaGetErrorName(error), by.file, by.line);
}
#endif
inline cudaError_t only_device_0(int ordinal) {
  return ordinal == 0 || ordinal == -1 /* get_device() of a tensor here */ ? cudaSuccess : failed(cudaErrorInvalidDevice, "there is one device, number 0");
}
}  // namespace simt

// ---- device ----

inline cudaError_t cudaDeviceSynchronize() { return (cudaError_t)simt::synchronize(); }
inline cudaError_t cudaDeviceReset() {
  simt::synchronize();
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) { *count = 1; return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* ordinal) { *ordinal = 0; return cudaSuccess; }
inline cudaError_t cudaSetDevice(int ordinal) { return simt::only_device_0(ordinal); }
inline cudaError_t cudaRuntimeGetVersion(int* version) { *version = 13000; return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* version) { *version = 13000; return cudaSuccess; }
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2;
inline constexpr unsigned cudaDeviceScheduleBlockingSync = 4, cudaDeviceMapHost = 8;
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = (size_t)simt::device().global_bytes;
  return cudaSuccess;
}

inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }

// 0 in a field that simt::Device knows nothing of.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  size_t totalConstMem;
  int major, minor, clockRate;
  size_t textureAlignment;
  int multiProcessorCount, integrated, canMapHostMemory, computeMode, concurrentKernels, ECCEnabled;
  int deviceOverlap, kernelExecTimeoutEnabled, tccDriver, isMultiGpuBoard, multiGpuBoardGroupID;
  size_t texturePitchAlignment, surfaceAlignment;
  int pciBusID, pciDeviceID, pciDomainID, asyncEngineCount, unifiedAddressing;
  int memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize;
  int maxThreadsPerMultiProcessor, globalL1CacheSupported, localL1CacheSupported;
  size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, concurrentManagedAccess, pageableMemoryAccess, pageableMemoryAccessUsesHostPageTables;
  int cooperativeLaunch, maxBlocksPerMultiProcessor, streamPrioritiesSupported, hostNativeAtomicSupported;
  int computePreemptionSupported, directManagedMemAccessFromHost, canUseHostPointerForRegisteredMem, accessPolicyMaxWindowSize;
  size_t sharedMemPerBlockOptin, reservedSharedMemPerBlock;
};

inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (const cudaError_t error = simt::only_device_0(ordinal)) return error;
  const simt::Device& d = simt::device();
  *properties = {};
  cudaDeviceProp& p = *properties;
  ::strncpy(p.name, d.name, sizeof p.name - 1);
  p.totalGlobalMem = (size_t)d.global_bytes;
  p.sharedMemPerBlock = (size_t)d.shared_per_block;
  p.sharedMemPerBlockOptin = (size_t)d.shared_per_block_optin;
  p.sharedMemPerMultiprocessor = (size_t)d.shared_per_multiprocessor;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = d.registers_per_multiprocessor;
  p.warpSize = 32;
  p.memPitch = 2147483647;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024, p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 2147483647, p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.major = d.major, p.minor = d.minor;
  p.clockRate = d.clock_khz;
  p.textureAlignment = 512;
  p.multiProcessorCount = d.multiprocessors;
  p.concurrentKernels = p.unifiedAddressing = p.canMapHostMemory = p.managedMemory = p.cooperativeLaunch = 1;
  p.globalL1CacheSupported = p.localL1CacheSupported = 1;
  p.l2CacheSize = (int)d.l2_bytes;
  p.maxThreadsPerMultiProcessor = d.threads_per_multiprocessor;
  p.maxBlocksPerMultiProcessor = d.blocks_per_multiprocessor;
  return cudaSuccess;
}

enum cudaComputeMode { cudaComputeModeDefault, cudaComputeModeExclusive, cudaComputeModeProhibited, cudaComputeModeExclusiveProcess };

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxBlockDimX = 2,
  cudaDevAttrMaxBlockDimY = 3,
  cudaDevAttrMaxBlockDimZ = 4,
  cudaDevAttrMaxGridDimX = 5,
  cudaDevAttrMaxGridDimY = 6,
  cudaDevAttrMaxGridDimZ = 7,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrTotalConstantMemory = 9,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrCanMapHostMemory = 19,
  cudaDevAttrComputeMode = 20,
  cudaDevAttrConcurrentKernels = 31,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxRegistersPerMultiprocessor = 82,
  cudaDevAttrManagedMemory = 83,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrMaxBlocksPerMultiprocessor = 106,
  cudaDevAttrReservedSharedMemoryPerBlock = 111,
};

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, ordinal)) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxBlockDimX: *value = p.maxThreadsDim[0]; break;
    case cudaDevAttrMaxBlockDimY: *value = p.maxThreadsDim[1]; break;
    case cudaDevAttrMaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
    case cudaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case cudaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
    case cudaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrTotalConstantMemory: *value = (int)p.totalConstMem; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case cudaDevAttrClockRate: *value = p.clockRate; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrIntegrated: *value = p.integrated; break;
    case cudaDevAttrCanMapHostMemory: *value = p.canMapHostMemory; break;
    case cudaDevAttrComputeMode: *value = p.computeMode; break;
    case cudaDevAttrConcurrentKernels: *value = p.concurrentKernels; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrUnifiedAddressing: *value = p.unifiedAddressing; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)p.sharedMemPerMultiprocessor; break;
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; break;
    case cudaDevAttrManagedMemory: *value = p.managedMemory; break;
    case cudaDevAttrCooperativeLaunch: *value = p.cooperativeLaunch; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = (int)p.reservedSharedMemPerBlock; break;
    default: return simt::failed(cudaErrorInvalidValue, "simt knows no such device attribute");
  }
  return cudaSuccess;
}

// ---- streams and events ----

struct CUstream_st {
  unsigned flags;
};
struct CUevent_st {
  bool recorded;
  timespec time;
};
typedef struct CUevent_st* cudaEvent_t;
typedef void (*cudaHostFn_t)(void*);
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void*);

inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaEventInterprocess = 4;
inline constexpr unsigned cudaEventRecordDefault = 0, cudaEventWaitDefault = 0;
inline const cudaStream_t cudaStreamLegacy = (cudaStream_t)1, cudaStreamPerThread = (cudaStream_t)2;

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  *stream = new CUstream_st{flags};
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) { return cudaStreamCreateWithFlags(stream, flags); }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
    return simt::failed(cudaErrorInvalidResourceHandle, "the default stream can't be destroyed");
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { *least = *greatest = 0; return cudaSuccess; }
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) { function(data); return cudaSuccess; }
inline cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void* data, unsigned) {
  function(stream, cudaSuccess, data);
  return cudaSuccess;
}

inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { *event = new CUevent_st{}; return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned flags = cudaEventDefault) { return cudaEventCreateWithFlags(event, flags); }
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { delete event; return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t = nullptr) {
  ::clock_gettime(CLOCK_MONOTONIC, &event->time);
  event->recorded = true;
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start->recorded || !end->recorded)
    return simt::failed(cudaErrorInvalidResourceHandle, "cudaEventElapsedTime needs two events that were recorded");
  *milliseconds = (float)((double)(end->time.tv_sec - start->time.tv_sec) * 1e3 + (double)(end->time.tv_nsec - start->time.tv_nsec) * 1e-6);
  return cudaSuccess;
}

// ---- memory ----

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
inline constexpr unsigned cudaMemAttachGlobal = 1, cudaMemAttachHost = 2;
inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4;
inline constexpr unsigned cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2;

namespace simt {
template <class T>
SIMT_INLINE cudaError_t give(T** pointer, size_t bytes) {
  *pointer = nullptr;
  if (const int error = sticky_error()) return (cudaError_t)error;
  if (bytes == 0) return cudaSuccess;
  *pointer = (T*)allocate(bytes);
  return *pointer ? cudaSuccess : failed(cudaErrorMemoryAllocation, "there is no memory for cudaMalloc");
}
}  // namespace simt

template <class T>
SIMT_INLINE cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  const cudaError_t error = simt::give(pointer, bytes);
  if (*pointer) simt::close_to_host(*pointer);
  return error;
}
inline cudaError_t cudaFree(void* pointer) {
  simt::synchronize();
  if (!pointer || simt::release(pointer)) return (cudaError_t)simt::sticky_error();
  return simt::failed(cudaErrorInvalidValue, "cudaFree of a pointer that cudaMalloc did not return, or that was freed before");
}
template <class T> SIMT_INLINE cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t) { return cudaMalloc(pointer, bytes); }
template <class T> SIMT_INLINE cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned = cudaMemAttachGlobal) { return simt::give(pointer, bytes); }
template <class T> SIMT_INLINE cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned = 0) { return simt::give(pointer, bytes); }
template <class T> SIMT_INLINE cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned) { return simt::give(pointer, bytes); }
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) { return cudaFree(pointer); }
inline cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
inline cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
template <class T> cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) { *device = (T*)host; return cudaSuccess; }
template <class T>
SIMT_INLINE cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}

namespace simt {
// Inline, here and below where a fault or a leak is told at the caller's line.
SIMT_INLINE cudaError_t copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (const int error = sticky_error()) return (cudaError_t)error;
  if (bytes == 0) return cudaSuccess;
  if ((unsigned)kind > cudaMemcpyDefault) return failed(cudaErrorInvalidMemcpyDirection, "cudaMemcpy knows no such direction");
  if (!target || !source) return failed(cudaErrorInvalidValue, "cudaMemcpy from or to a null pointer");
  if (const char* why = transfer_problem("cudaMemcpy", target, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, source,
                                            kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, bytes))
    return failed(cudaErrorInvalidValue, why);
  simt::move_bytes(target, source, bytes);
  return cudaSuccess;
}
}  // namespace simt

SIMT_INLINE cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  simt::synchronize();
  return simt::copy(target, source, bytes, kind);
}
SIMT_INLINE cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return simt::copy(target, source, bytes, kind);
}
SIMT_INLINE cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
  if (width > target_pitch || width > source_pitch)
    return simt::failed(cudaErrorInvalidPitchValue, "cudaMemcpy2D of rows that are wider than the pitch");
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error = cudaMemcpy((char*)target + row * target_pitch, (const char*)source + row * source_pitch, width, kind))
      return error;
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpy2D(target, target_pitch, source, source_pitch, width, height, kind);
}
SIMT_INLINE cudaError_t cudaMemset(void* target, int byte, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (const int error = simt::sticky_error()) return (cudaError_t)error;
  if (!target) return simt::failed(cudaErrorInvalidValue, "cudaMemset of a null pointer");
  if (const char* why = simt::transfer_problem("cudaMemset", target, true, nullptr, false, bytes))
    return simt::failed(cudaErrorInvalidValue, why);
  simt::set_bytes(target, byte, bytes);
  return cudaSuccess;
}
SIMT_INLINE cudaError_t cudaMemsetAsync(void* target, int byte, size_t bytes, cudaStream_t = nullptr) { return cudaMemset(target, byte, bytes); }
SIMT_INLINE cudaError_t cudaMemset2D(void* target, size_t pitch, int byte, size_t width, size_t height) {
  if (width > pitch) return simt::failed(cudaErrorInvalidPitchValue, "cudaMemset2D of rows that are wider than the pitch");
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error = cudaMemset((char*)target + row * pitch, byte, width)) return error;
  return cudaSuccess;
}
inline constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly = 2,
  cudaMemAdviseSetPreferredLocation = 3,
  cudaMemAdviseUnsetPreferredLocation = 4,
  cudaMemAdviseSetAccessedBy = 5,
  cudaMemAdviseUnsetAccessedBy = 6,
};
enum cudaMemLocationType { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2 };
struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};
// Both forms: a device's number (CUDA 12) or a location (CUDA 13). All memory is in one place here.
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned = 0, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }

// ---- __constant__ and __device__ variables, which are ordinary ones here ----

namespace simt {
inline cudaError_t copy_symbol(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (const int error = synchronize()) return (cudaError_t)error;
  if (bytes == 0) return cudaSuccess;
  if ((unsigned)kind > cudaMemcpyDefault || kind == cudaMemcpyHostToHost)
    return failed(cudaErrorInvalidMemcpyDirection, "a variable of the device's can't be copied in this direction");
  if (!target || !source) return failed(cudaErrorInvalidValue, "a copy from or to a null pointer");
  simt::move_bytes(target, source, bytes);
  return cudaSuccess;
}
}  // namespace simt

template <class T>
cudaError_t cudaGetSymbolAddress(void** pointer, const T& symbol) {
  *pointer = (void*)&symbol;
  simt::note_symbol(*pointer, sizeof(T));
  return cudaSuccess;
}
template <class T>
cudaError_t cudaGetSymbolSize(size_t* bytes, const T&) {
  *bytes = sizeof(T);
  return cudaSuccess;
}
template <class T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset)
    return simt::failed(cudaErrorInvalidValue, "cudaMemcpyToSymbol writes past the end of the variable");
  return simt::copy_symbol((char*)&symbol + offset, source, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  if (offset > sizeof(T) || bytes > sizeof(T) - offset)
    return simt::failed(cudaErrorInvalidValue, "cudaMemcpyFromSymbol reads past the end of the variable");
  return simt::copy_symbol(target, (const char*)&symbol + offset, bytes, kind);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                    cudaStream_t = nullptr) {
  return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind);
}
template <class T>
cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t = nullptr) {
  return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind);
}

// ---- kernels ----

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 13,
};
enum cudaSharedCarveout { cudaSharedmemCarveoutDefault = -1, cudaSharedmemCarveoutMaxL1 = 0, cudaSharedmemCarveoutMaxShared = 100 };

// 0 where only a GPU's compiler knows: registers, local memory, static shared memory.
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes, preferredShmemCarveout;
};

template <class F>
cudaError_t cudaFuncSetAttribute(F* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > simt::device().shared_per_block_optin)
    return simt::failed(cudaErrorInvalidValue, "cudaFuncSetAttribute asks for more shared memory than a block can have on this device");
  simt::allow_shared((const void*)kernel, value);
  return cudaSuccess;
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) { return cudaSuccess; }
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F*) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->maxDynamicSharedSizeBytes = (int)simt::device().shared_per_block;
  attributes->ptxVersion = attributes->binaryVersion = simt::device().major * 10 + simt::device().minor;
  return cudaSuccess;
}

// By threads, blocks and dynamic shared memory; registers are not known here.
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F*, int threads, size_t dynamic_shared) {
  if (threads < 1) return simt::failed(cudaErrorInvalidValue, "a block has at least one thread");
  const simt::Device& d = simt::device();
  const long long by_threads = d.threads_per_multiprocessor / ((threads + 31) / 32 * 32);
  const long long by_shared = d.shared_per_multiprocessor / ((long long)dynamic_shared + 1024);   // 1 KiB is CUDA's own
  long long count = by_threads < by_shared ? by_threads : by_shared;
  if (count > d.blocks_per_multiprocessor) count = d.blocks_per_multiprocessor;
  *blocks = threads > 1024 || (long long)dynamic_shared > d.shared_per_block_optin ? 0 : (int)count;
  return cudaSuccess;
}
// The block size that keeps most threads on a multiprocessor, the largest of equals; blocks to fill the device once.
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F* kernel, size_t dynamic_shared = 0, int limit = 0) {
  int best = 0;
  for (int threads = limit > 0 && limit < 1024 ? (limit + 31) / 32 * 32 : 1024; threads >= 32; threads -= 32) {
    const int size = limit > 0 && threads > limit ? limit : threads;
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, size, dynamic_shared);
    if (blocks * size <= best) continue;
    best = blocks * size;
    *block = size;
    *grid = blocks * simt::device().multiprocessors;
  }
  return best ? cudaSuccess : simt::failed(cudaErrorInvalidValue, "no block of this kernel fits on a multiprocessor");
}

namespace simt {

// A kernel with what a launch by pointer can't tell from the pointer.
template <class... P>
struct NamedKernel {
  void (*kernel)(P...);
  const char* name;
  const char* parameters;
  int defined;
  int max_threads;
};
template <class... P>
NamedKernel<P...> named(void (*kernel)(P...), const char* name, const char* parameters = "", int defined = 0, int max_threads = 0) {
  return {kernel, name, parameters, defined, max_threads};
}

template <class T>
T pointed(void* argument) { return *static_cast<T*>(argument); }

template <class... P, std::size_t... I>
cudaError_t launch_pointed(const Site& site, void (*kernel)(P...), const Config& config, bool cooperative, void** arguments,
                           std::index_sequence<I...>) {
  std::tuple<P...> values(pointed<P>(arguments[I])...);
  launch_body(site, (const void*)kernel, kernel, config, cooperative, values);
  // Looking is left to the caller: a result that nobody reads is not an error that somebody saw.
  return cudaSuccess;
}

}  // namespace simt

#define SIMT_LAUNCH(function, cooperative)                                                                              \
  template <class... P>                                                                                                 \
  cudaError_t function(const simt::NamedKernel<P...>& kernel, dim3 grid, dim3 block, void** arguments, size_t shared = 0, \
                       cudaStream_t stream = nullptr, const char* file = __builtin_FILE(), int line = __builtin_LINE()) { \
    return simt::launch_pointed({kernel.name, file, line, kernel.parameters, kernel.defined, kernel.max_threads}, kernel.kernel,        \
                                {grid, block, shared, stream}, cooperative, arguments, std::index_sequence_for<P...>()); \
  }                                                                                                                     \
  template <class... P>                                                                                                 \
  cudaError_t function(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,                \
                       cudaStream_t stream = nullptr, const char* file = __builtin_FILE(), int line = __builtin_LINE()) { \
    return function(simt::named(kernel, "launched by " #function), grid, block, arguments, shared, stream, file, line); \
  }
SIMT_LAUNCH(cudaLaunchKernel, false)
SIMT_LAUNCH(cudaLaunchCooperativeKernel, true)
#undef SIMT_LAUNCH
