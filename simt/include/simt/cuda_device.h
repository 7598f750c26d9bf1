// CUDA's host functions about the device: its properties, attributes and limits, and waiting for it.
#pragma once

#include <string.h>

#include <simt/cuda_errors.h>
#include <simt/cuda_properties.h>

inline cudaError_t cudaDeviceSynchronize() { return (cudaError_t)simt::synchronize(); }
inline cudaError_t cudaDeviceReset() {
  simt::synchronize();
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* ordinal) {
  *ordinal = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int ordinal) { return simt::only_device_0(ordinal); }
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline constexpr unsigned cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2;
inline constexpr unsigned cudaDeviceScheduleBlockingSync = 4, cudaDeviceMapHost = 8;
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = (size_t)simt::device().global_bytes;
  return cudaSuccess;
}

inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }

enum cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual
};
enum cudaSharedMemConfig {
  cudaSharedMemBankSizeDefault,
  cudaSharedMemBankSizeFourByte,
  cudaSharedMemBankSizeEightByte
};
enum cudaLimit { cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize };
namespace simt {
inline size_t device_limits[] = {1024, 7340032, 8388608};  // CUDA's defaults; none of them limits anything here
inline cudaFuncCache cache_preference = cudaFuncCachePreferNone;
inline unsigned device_flags = 0;
}  // namespace simt
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache preference) {
  simt::cache_preference = preference;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* preference) {
  *preference = simt::cache_preference;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
template <class F> cudaError_t cudaFuncSetSharedMemConfig(F*, cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* width) {
  *width = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if ((unsigned)limit > cudaLimitMallocHeapSize)
    return simt::failed(cudaErrorInvalidValue, "simt does not know this limit of the device");
  simt::device_limits[limit] = value;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if ((unsigned)limit > cudaLimitMallocHeapSize)
    return simt::failed(cudaErrorInvalidValue, "simt does not know this limit of the device");
  *value = simt::device_limits[limit];
  return cudaSuccess;
}
inline cudaError_t cudaSetDeviceFlags(unsigned flags) {
  simt::device_flags = flags;
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  *flags = simt::device_flags;
  return cudaSuccess;
}
inline cudaError_t cudaChooseDevice(int* ordinal, const cudaDeviceProp*) {
  *ordinal = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int ordinal) {
  if (length < 13) return simt::failed(cudaErrorInvalidValue, "the text of a PCI bus has 12 characters");
  ::strncpy(text, "0000:00:00.0", (size_t)length);
  return simt::only_device_0(ordinal);
}
