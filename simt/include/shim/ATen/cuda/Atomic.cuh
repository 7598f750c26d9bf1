// Stands in for torch's ATen/cuda/Atomic.cuh: atomic functions under torch's names, and on torch's 16-bit floats.
#pragma once

inline at::Half atomicAdd(at::Half* address, at::Half value) {
  return __half2float(atomicAdd((__half*)address, __float2half((float)value)));
}
inline at::BFloat16 atomicAdd(at::BFloat16* address, at::BFloat16 value) {
  return __bfloat162float(atomicAdd((__nv_bfloat16*)address, __float2bfloat16((float)value)));
}

template <class T>
T gpuAtomicAdd(T* address, T value) {
  return atomicAdd(address, value);
}
template <class T>
void gpuAtomicAddNoReturn(T* address, T value) {
  atomicAdd(address, value);
}
inline long gpuAtomicAdd(long* address, long value) {
  return (long)atomicAdd((unsigned long long*)address, (unsigned long long)value);
}
template <class T>
T gpuAtomicMax(T* address, T value) {
  return atomicMax(address, value);
}
template <class T>
T gpuAtomicMin(T* address, T value) {
  return atomicMin(address, value);
}
