// CUDA's host functions: memory, streams, events, symbols and launches by pointer; with those of cuda_errors.h,
// cuda_device.h and cuda_streams.h.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <simt/cuda_device.h>
#include <simt/cuda_errors.h>
#include <simt/cuda_location.h>
#include <simt/cuda_pointers.h>
#include <simt/cuda_pools.h>
#include <simt/cuda_streams.h>
#include <simt/host.h>
#include <simt/runtime.h>

#define CUDART_VERSION 13000
// Other headers test these to find out whether CUDA's headers are included.
#define __CUDA_RUNTIME_H__
#define __DRIVER_TYPES_H__

// ---- memory ----

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};
inline constexpr unsigned cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4;
inline constexpr unsigned cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
                          cudaHostAllocWriteCombined = 4;
inline constexpr unsigned cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2;

namespace simt {
template <class T>
SIMT_INLINE cudaError_t give(T** pointer, size_t bytes) {
  if (!pointer) return failed(cudaErrorInvalidValue, "an allocation needs the address of a pointer, and got null");
  *pointer = nullptr;
  if (const int error = sticky_error()) return (cudaError_t)error;
  if (bytes == 0) return cudaSuccess;
  *pointer = (T*)allocate(bytes);
  return *pointer ? cudaSuccess : failed(cudaErrorMemoryAllocation, "cudaMalloc failed: there is not enough memory");
}
}  // namespace simt

template <class T>
SIMT_INLINE cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  if (const char* const why = simt::no_room(bytes)) return simt::failed(cudaErrorMemoryAllocation, why);
  if (const cudaError_t error = simt::give(pointer, bytes)) return error;
  if (*pointer) simt::close_to_host(*pointer);
  simt::note_memory(*pointer, bytes, cudaMemoryTypeDevice);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* pointer) {
  simt::synchronize();
  simt::forget_pooled(pointer);
  simt::forget_memory(pointer);
  if (!pointer || simt::release(pointer)) return (cudaError_t)simt::sticky_error();
  return simt::failed(cudaErrorInvalidValue,
                      "cudaFree got a pointer that cudaMalloc did not return, or that was already freed");
}
template <class T>
SIMT_INLINE cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  if (const cudaError_t error = simt::refuse_captured(stream)) return error;
  if (!pool) return simt::failed(cudaErrorInvalidValue, "cudaMallocFromPoolAsync got no pool");
  if (const cudaError_t error = cudaMalloc(pointer, bytes)) return error;
  if (*pointer) simt::note_pooled(*pointer, bytes, pool);
  return cudaSuccess;
}
template <class T>
SIMT_INLINE cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, simt::current_pool, stream);
}
template <class T>
SIMT_INLINE cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return cudaMallocFromPoolAsync(pointer, bytes, pool, stream);
}
inline cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  const cudaError_t error = simt::refuse_captured(stream);
  return error ? error : cudaFree(pointer);
}
template <class T> SIMT_INLINE cudaError_t cudaMallocManaged(T** pointer, size_t bytes,
                                                             unsigned = cudaMemAttachGlobal) {
  if (const cudaError_t error = simt::give(pointer, bytes)) return error;
  simt::note_memory(*pointer, bytes, cudaMemoryTypeManaged);
  return cudaSuccess;
}
// A hint about who reaches managed memory; here all do at any time.
template <class T> cudaError_t cudaStreamAttachMemAsync(cudaStream_t, T*, size_t = 0, unsigned = cudaMemAttachSingle) {
  return cudaSuccess;
}
template <class T> SIMT_INLINE cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned flags) {
  if (const cudaError_t error = simt::give(pointer, bytes)) return error;
  simt::note_memory(*pointer, bytes, cudaMemoryTypeHost, flags | cudaHostAllocMapped);
  return cudaSuccess;
}
template <class T> SIMT_INLINE cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned flags = 0) {
  return cudaHostAlloc(pointer, bytes, flags);
}
inline cudaError_t cudaFreeHost(void* pointer) { return cudaFree(pointer); }
inline cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  if (!pointer || !bytes) return simt::failed(cudaErrorInvalidValue, "cudaHostRegister got no memory");
  if (simt::find_memory(pointer).pointer)
    return simt::failed(cudaErrorHostMemoryAlreadyRegistered, "cudaHostRegister got memory that is registered already");
  simt::register_host(pointer, bytes);
  simt::note_memory(pointer, bytes, cudaMemoryTypeHost, flags | cudaHostRegisterMapped);
  return cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* pointer) {
  if (const simt::KnownMemory memory = simt::find_memory(pointer);
      memory.pointer != pointer || memory.type != cudaMemoryTypeHost)
    return simt::failed(cudaErrorHostMemoryNotRegistered, "cudaHostUnregister got memory that is not registered");
  simt::unregister_host(pointer);
  simt::forget_memory(pointer);
  return cudaSuccess;
}
template <class T> cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned) {
  if (!simt::find_memory(host).pointer)
    return simt::failed(cudaErrorInvalidValue,
                        "cudaHostGetDevicePointer needs memory of cudaHostAlloc, or of cudaHostRegister");
  *device = (T*)host;
  return cudaSuccess;
}
template <class T>
SIMT_INLINE cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}

namespace simt {
// Inline, like other functions below, so that a fault or a leak is reported at the caller's line.
SIMT_INLINE cudaError_t copy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                             const char* call = "cudaMemcpy") {
  if (const int error = sticky_error()) return (cudaError_t)error;
  if (bytes == 0) return cudaSuccess;
  if ((unsigned)kind > cudaMemcpyDefault)
    return failed(cudaErrorInvalidMemcpyDirection, "cudaMemcpy got an invalid direction");
  if (!target || !source) return failed(cudaErrorInvalidValue, "cudaMemcpy got a null pointer");
  if (const char* why =
          transfer_problem(call, target, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, source,
                           kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, bytes,
                           __builtin_object_size(target, 0), __builtin_object_size(source, 0)))
    return failed(cudaErrorInvalidValue, why);
  simt::move_bytes(target, source, bytes);
  return cudaSuccess;
}
}  // namespace simt

SIMT_INLINE cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  simt::synchronize();
  return simt::copy(target, source, bytes, kind);
}
SIMT_INLINE cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                                        cudaStream_t stream = nullptr) {
  if (simt::captured(stream, simt::copy_node, [=] { cudaMemcpy(target, source, bytes, kind); })) return cudaSuccess;
  return simt::copy(target, source, bytes, kind, "cudaMemcpyAsync");
}

namespace simt {
// The problem of a copy of rows, or of slices of rows, of which each side has its own pitch.
SIMT_INLINE const char* rows_problem(const char* call, const void* target, size_t target_bytes, const void* source,
                                     size_t source_bytes, cudaMemcpyKind kind) {
  return transfer_problem(call, target, kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice, source,
                          kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice, target_bytes,
                          __builtin_object_size(target, 0), __builtin_object_size(source, 0), source_bytes);
}
}  // namespace simt

SIMT_INLINE cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  if (width > target_pitch || width > source_pitch)
    return simt::failed(cudaErrorInvalidPitchValue, "cudaMemcpy2D got rows that are wider than the pitch");
  if (width && height && target && source)
    if (const char* why = simt::rows_problem("cudaMemcpy2D", target, (height - 1) * target_pitch + width, source,
                                             (height - 1) * source_pitch + width, kind))
      return simt::failed(cudaErrorInvalidValue, why);
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error =
            cudaMemcpy((char*)target + row * target_pitch, (const char*)source + row * source_pitch, width, kind))
      return error;
  return cudaSuccess;
}
SIMT_INLINE cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                                          size_t width, size_t height, cudaMemcpyKind kind,
                                          cudaStream_t stream = nullptr) {
  auto copy = [=] { return cudaMemcpy2D(target, target_pitch, source, source_pitch, width, height, kind); };
  return simt::captured(stream, simt::copy_node, copy) ? cudaSuccess : copy();
}
SIMT_INLINE cudaError_t cudaMemset(void* target, int byte, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  if (const int error = simt::sticky_error()) return (cudaError_t)error;
  if (!target) return simt::failed(cudaErrorInvalidValue, "cudaMemset got a null pointer");
  if (const char* why = simt::transfer_problem("cudaMemset", target, true, nullptr, false, bytes))
    return simt::failed(cudaErrorInvalidValue, why);
  simt::set_bytes(target, byte, bytes);
  return cudaSuccess;
}
SIMT_INLINE cudaError_t cudaMemsetAsync(void* target, int byte, size_t bytes, cudaStream_t stream = nullptr) {
  if (simt::captured(stream, simt::memset_node, [=] { cudaMemset(target, byte, bytes); })) return cudaSuccess;
  return cudaMemset(target, byte, bytes);
}
SIMT_INLINE cudaError_t cudaMemset2D(void* target, size_t pitch, int byte, size_t width, size_t height) {
  if (width > pitch)
    return simt::failed(cudaErrorInvalidPitchValue, "cudaMemset2D got rows that are wider than the pitch");
  for (size_t row = 0; row < height; ++row)
    if (const cudaError_t error = cudaMemset((char*)target + row * pitch, byte, width)) return error;
  return cudaSuccess;
}
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly = 2,
  cudaMemAdviseSetPreferredLocation = 3,
  cudaMemAdviseUnsetPreferredLocation = 4,
  cudaMemAdviseSetAccessedBy = 5,
  cudaMemAdviseUnsetAccessedBy = 6,
};
// Two forms: with a device number (CUDA 12) or a location (CUDA 13). Here all memory is in one place.
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned = 0, cudaStream_t = nullptr) {
  return cudaSuccess;
}
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, int) { return cudaSuccess; }
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }

// ---- __constant__ and __device__ variables, which are ordinary variables here ----

namespace simt {
SIMT_INLINE cudaError_t copy_symbol(const char* call, void* target, const void* source, size_t bytes,
                                    cudaMemcpyKind kind) {
  if (const int error = synchronize()) return (cudaError_t)error;
  if (bytes == 0) return cudaSuccess;
  if ((unsigned)kind > cudaMemcpyDefault || kind == cudaMemcpyHostToHost)
    return failed(cudaErrorInvalidMemcpyDirection,
                  "a __device__ or __constant__ variable cannot be copied in this direction");
  if (!target || !source) return failed(cudaErrorInvalidValue, "a copy to or from a variable got a null pointer");
  if (const char* why = transfer_problem(call, target, false, source, false, bytes, __builtin_object_size(target, 0),
                                         __builtin_object_size(source, 0)))
    return failed(cudaErrorInvalidValue, why);
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
SIMT_INLINE cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* source, size_t bytes, size_t offset = 0,
                                           cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
  if (kind == cudaMemcpyDeviceToHost)
    return simt::failed(cudaErrorInvalidMemcpyDirection, "cudaMemcpyToSymbol cannot copy to the host");
  if (offset > sizeof(T) || bytes > sizeof(T) - offset)
    return simt::failed(cudaErrorInvalidValue, "cudaMemcpyToSymbol writes past the end of the variable");
  return simt::copy_symbol("cudaMemcpyToSymbol", (char*)&symbol + offset, source, bytes, kind);
}
template <class T>
SIMT_INLINE cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t bytes, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
  if (kind == cudaMemcpyHostToDevice)
    return simt::failed(cudaErrorInvalidMemcpyDirection, "cudaMemcpyFromSymbol cannot copy from the host");
  if (offset > sizeof(T) || bytes > sizeof(T) - offset)
    return simt::failed(cudaErrorInvalidValue, "cudaMemcpyFromSymbol reads past the end of the variable");
  return simt::copy_symbol("cudaMemcpyFromSymbol", target, (const char*)&symbol + offset, bytes, kind);
}
template <class T>
SIMT_INLINE cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* source, size_t bytes, size_t offset,
                                                cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  auto copy = [=, &symbol] { return cudaMemcpyToSymbol(symbol, source, bytes, offset, kind); };
  return simt::captured(stream, simt::copy_node, copy) ? cudaSuccess : copy();
}
template <class T>
SIMT_INLINE cudaError_t cudaMemcpyFromSymbolAsync(void* target, const T& symbol, size_t bytes, size_t offset,
                                                  cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
  auto copy = [=, &symbol] { return cudaMemcpyFromSymbol(target, symbol, bytes, offset, kind); };
  return simt::captured(stream, simt::copy_node, copy) ? cudaSuccess : copy();
}

// ---- kernels ----

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
  cudaFuncAttributeNonPortableClusterSizeAllowed = 13,
};
enum cudaSharedCarveout {
  cudaSharedmemCarveoutDefault = -1,
  cudaSharedmemCarveoutMaxL1 = 0,
  cudaSharedmemCarveoutMaxShared = 100
};

// Values that only nvcc knows are 0: registers, local memory.
struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes,
      preferredShmemCarveout;
};

template <class F>
cudaError_t cudaFuncSetAttribute(F* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value + simt::static_shared((const void*)kernel) > simt::device().shared_per_block_optin)
    return simt::failed(cudaErrorInvalidValue,
                        "cudaFuncSetAttribute requests more shared memory than a block can have on this device, with "
                        "the kernel's __shared__ arrays");
  simt::allow_shared((const void*)kernel, value);
  return cudaSuccess;
}
template <class F>
cudaError_t cudaFuncSetCacheConfig(F*, cudaFuncCache) {
  return cudaSuccess;
}
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* kernel) {
  *attributes = {};
  attributes->sharedSizeBytes = (size_t)simt::static_shared((const void*)kernel);
  attributes->maxThreadsPerBlock = simt::most_threads((const void*)kernel);
  attributes->maxDynamicSharedSizeBytes = simt::device().shared_per_block - (int)attributes->sharedSizeBytes;
  attributes->ptxVersion = attributes->binaryVersion = simt::device().major * 10 + simt::device().minor;
  return cudaSuccess;
}

template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F* kernel, int threads, size_t dynamic_shared) {
  if (threads < 1) return simt::failed(cudaErrorInvalidValue, "a block has at least one thread");
  const auto* function = (const void*)kernel;
  const long long shared = simt::static_shared(function) + (long long)dynamic_shared;
  const bool fits = threads <= simt::most_threads(function) && shared <= simt::device().shared_per_block_optin;
  *blocks = fits ? simt::resident_blocks(threads, shared) : 0;
  return cudaSuccess;
}
// Returns the largest block size with the most threads on a multiprocessor, and the blocks that fill the device once.
// dynamic_shared: called with the number of threads of a block, returns its bytes of dynamic shared memory.
template <class F, class S>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* grid, int* block, F* kernel, S dynamic_shared,
                                                           int limit = 0) {
  int best = 0;
  const int bound = simt::most_threads((const void*)kernel), most = limit > 0 && limit < bound ? limit : bound;
  for (int threads = (most + 31) / 32 * 32; threads >= 32; threads -= 32) {
    const int size = threads > most ? most : threads;
    int blocks = 0;
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, size, (size_t)dynamic_shared(size));
    if (blocks * size <= best) continue;
    best = blocks * size;
    *block = size;
    *grid = blocks * simt::device().multiprocessors;
  }
  return best ? cudaSuccess : simt::failed(cudaErrorInvalidValue, "no block of this kernel fits on a multiprocessor");
}
template <class F>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F* kernel, size_t dynamic_shared = 0,
                                               int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMem(
      grid, block, kernel, [=](int) { return dynamic_shared; }, limit);
}

namespace simt {

// A kernel with the facts that a launch through a pointer cannot get from the pointer.
template <class... P>
struct NamedKernel {
  void (*kernel)(P...);
  const char* name;
  const char* parameters;
  int defined;
  int max_threads;
};
template <class... P>
NamedKernel<P...> named(void (*kernel)(P...), const char* name, const char* parameters = "", int defined = 0,
                        int max_threads = 0) {
  return {kernel, name, parameters, defined, max_threads};
}

template <class T>
T pointed(void* argument) {
  return *static_cast<T*>(argument);
}

template <class... P>
cudaError_t launch_kept(const NamedKernel<P...>& named, const char* file, int line, const Config& config,
                        bool cooperative, std::tuple<Kept<P>...>& values) {
  const Site site{named.name, file, line, named.parameters, named.defined, named.max_threads};
  void (*const kernel)(P...) = named.kernel;
  auto call = call_of(kernel);
  const auto error = (cudaError_t)launch_body(site, (const void*)kernel, call, config, cooperative, values);
  if (error) note_returned();
  return error;
}

template <class... P, std::size_t... I>
cudaError_t launch_pointed(const NamedKernel<P...>& kernel, const char* file, int line, const Config& config,
                           bool cooperative, void** arguments, std::index_sequence<I...>) {
  std::tuple<Kept<P>...> values(pointed<Kept<P>>(arguments[I])...);
  return launch_kept(kernel, file, line, config, cooperative, values);
}

}  // namespace simt

#define SIMT_LAUNCH(function, cooperative)                                                                       \
  template <class... P>                                                                                          \
  cudaError_t function(const simt::NamedKernel<P...>& kernel, dim3 grid, dim3 block, void** arguments,           \
                       size_t shared = 0, cudaStream_t stream = nullptr, const char* file = __builtin_FILE(),    \
                       int line = __builtin_LINE()) {                                                            \
    return simt::launch_pointed(kernel, file, line, {grid, block, shared, stream}, cooperative, arguments,       \
                                std::index_sequence_for<P...>());                                                \
  }                                                                                                              \
  template <class... P>                                                                                          \
  cudaError_t function(void (*kernel)(P...), dim3 grid, dim3 block, void** arguments, size_t shared = 0,         \
                       cudaStream_t stream = nullptr, const char* file = __builtin_FILE(),                       \
                       int line = __builtin_LINE()) {                                                            \
    return function(simt::named(kernel, "launched by " #function), grid, block, arguments, shared, stream, file, \
                    line);                                                                                       \
  }
SIMT_LAUNCH(cudaLaunchKernel, false)
SIMT_LAUNCH(cudaLaunchCooperativeKernel, true)
#undef SIMT_LAUNCH

// Launches with attributes. A cooperative one is as above; the others that are not refused by name change no result.
enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3,
  cudaLaunchAttributePriority = 8,
  cudaLaunchAttributePreferredSharedMemoryCarveout = 14
};
enum cudaAccessProperty { cudaAccessPropertyNormal, cudaAccessPropertyStreaming, cudaAccessPropertyPersisting };
struct cudaAccessPolicyWindow {
  void* base_ptr;
  size_t num_bytes;
  float hitRatio;
  cudaAccessProperty hitProp, missProp;
};
union cudaLaunchAttributeValue {
  char pad[64];
  cudaAccessPolicyWindow accessPolicyWindow;
  int cooperative;
  int syncPolicy;
  int priority;
  unsigned sharedMemCarveout;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};

namespace simt {

// A configuration, with the place of the call that gets it.
struct ConfigAt {
  const cudaLaunchConfig_t* given;
  const char* file;
  int line;
  ConfigAt(const cudaLaunchConfig_t* given, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : given(given), file(file), line(line) {}
  Config config() const { return {given->gridDim, given->blockDim, given->dynamicSmemBytes, given->stream}; }
  bool is_cooperative() const {
    for (unsigned i = 0; i < given->numAttrs; ++i)
      if (given->attrs[i].id == cudaLaunchAttributeCooperative && given->attrs[i].val.cooperative) return true;
    return false;
  }
};

}  // namespace simt

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const simt::ConfigAt& at, const simt::NamedKernel<P...>& kernel, A&&... given) {
  static_assert(sizeof...(P) == sizeof...(A),
                "cudaLaunchKernelEx needs as many arguments as the kernel has parameters");
  if (!at.given) return simt::failed(cudaErrorInvalidValue, "cudaLaunchKernelEx got a null pointer");
  std::tuple<simt::Kept<P>...> values(static_cast<P>(given)...);
  return simt::launch_kept(kernel, at.file, at.line, at.config(), at.is_cooperative(), values);
}
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const simt::ConfigAt& at, void (*kernel)(P...), A&&... given) {
  return cudaLaunchKernelEx(at, simt::named(kernel, "launched by cudaLaunchKernelEx"), std::forward<A>(given)...);
}
template <class... P>
cudaError_t cudaLaunchKernelExC(const simt::ConfigAt& at, const simt::NamedKernel<P...>& kernel, void** arguments) {
  if (!at.given) return simt::failed(cudaErrorInvalidValue, "cudaLaunchKernelExC got a null pointer");
  return simt::launch_pointed(kernel, at.file, at.line, at.config(), at.is_cooperative(), arguments,
                              std::index_sequence_for<P...>());
}
template <class... P>
cudaError_t cudaLaunchKernelExC(const simt::ConfigAt& at, void (*kernel)(P...), void** arguments) {
  return cudaLaunchKernelExC(at, simt::named(kernel, "launched by cudaLaunchKernelExC"), arguments);
}
