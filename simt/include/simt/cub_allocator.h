// cub::CachingDeviceAllocator, which keeps nothing here: memory is quick to get.
#pragma once

#include <simt/cuda_api.h>

namespace cub {

struct CachingDeviceAllocator {
  explicit CachingDeviceAllocator(bool = false, bool = false) {}
  CachingDeviceAllocator(unsigned, unsigned, unsigned, std::size_t = 0, bool = false, bool = false) {}
  SIMT_INLINE cudaError_t DeviceAllocate(void** pointer, std::size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(pointer, bytes);
  }
  SIMT_INLINE cudaError_t DeviceAllocate(int, void** pointer, std::size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(pointer, bytes);
  }
  cudaError_t DeviceFree(void* pointer) { return cudaFree(pointer); }
  cudaError_t DeviceFree(int, void* pointer) { return cudaFree(pointer); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub

#ifndef CubDebug
#define CubDebug(call) (call)
#endif
#ifndef CubDebugExit
#define CubDebugExit(call)              \
  do {                                  \
    if ((call) != cudaSuccess) exit(1); \
  } while (0)
#endif
