// CUDA's functions for work on several GPUs, as they behave on a machine with one: device 0 has no peer.
#pragma once

#include <simt/cuda_api.h>

inline cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  *can_access = 0;
  const cudaError_t error = simt::only_device_0(device);
  return error ? error : simt::only_device_0(peer);
}
inline cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return simt::failed(cudaErrorInvalidDevice, "there is only device 0, which is not its own peer");
}
inline cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  if (const cudaError_t error = simt::only_device_0(peer)) return error;
  return simt::failed(cudaErrorPeerAccessNotEnabled, "there is only device 0, which has no peer");
}
SIMT_INLINE cudaError_t cudaMemcpyPeer(void* target, int target_device, const void* source, int source_device,
                                       size_t bytes) {
  if (const cudaError_t error = simt::only_device_0(target_device)) return error;
  if (const cudaError_t error = simt::only_device_0(source_device)) return error;
  return cudaMemcpy(target, source, bytes, cudaMemcpyDeviceToDevice);
}
SIMT_INLINE cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source, int source_device,
                                            size_t bytes, cudaStream_t stream = nullptr) {
  if (const cudaError_t error = simt::only_device_0(target_device)) return error;
  if (const cudaError_t error = simt::only_device_0(source_device)) return error;
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}
