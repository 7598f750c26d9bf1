// What kind of memory a pointer leads to: cudaPointerGetAttributes and cudaHostGetFlags.
#pragma once

#include <simt/cuda_errors.h>
#include <simt/live_list.h>

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3,
};
struct cudaPointerAttributes {
  cudaMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
};

namespace simt {
struct KnownMemory {
  const char* pointer;
  size_t bytes;
  cudaMemoryType type;
  unsigned flags;
};
inline LiveList<KnownMemory> known_memory;  // live allocations and registered memory
inline bool known_memory_locked = false;

inline void note_memory(const void* pointer, size_t bytes, cudaMemoryType type, unsigned flags = 0) {
  if (!pointer) return;
  const SpinLock lock(known_memory_locked);
  known_memory.add({(const char*)pointer, bytes, type, flags});
}
inline void forget_memory(const void* pointer) {
  const SpinLock lock(known_memory_locked);
  known_memory.take(pointer);
}
// Returns the entry that holds the pointer, with a null pointer if there is none.
inline KnownMemory find_memory(const void* pointer) {
  const SpinLock lock(known_memory_locked);
  return known_memory.find([pointer](const KnownMemory& one) {
    return one.pointer <= (const char*)pointer && (const char*)pointer < one.pointer + one.bytes;
  });
}
}  // namespace simt

inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (!attributes) return simt::failed(cudaErrorInvalidValue, "cudaPointerGetAttributes got a null pointer");
  const simt::KnownMemory memory = simt::find_memory(pointer);
  const bool known = memory.pointer, closed = memory.type == cudaMemoryTypeDevice;
  *attributes = {memory.type, known ? 0 : -2, known ? (void*)pointer : nullptr, closed ? nullptr : (void*)pointer};
  return cudaSuccess;
}
inline cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  const simt::KnownMemory memory = simt::find_memory(host);
  if (!flags || memory.type != cudaMemoryTypeHost)
    return simt::failed(cudaErrorInvalidValue, "cudaHostGetFlags got a pointer to memory that is not page-locked");
  *flags = memory.flags;
  return cudaSuccess;
}
