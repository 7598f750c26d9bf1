// What kind of memory a pointer leads to: cudaPointerGetAttributes and cudaHostGetFlags.
#pragma once

#include <simt/cuda_errors.h>

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
// The live allocations and the registered memory, in a list behind a lock: host threads may allocate at once.
struct KnownMemory {
  const char* pointer;
  size_t bytes;
  cudaMemoryType type;
  unsigned flags;
  KnownMemory* next;
};
inline KnownMemory* known_memory = nullptr;
inline bool known_memory_locked = false;
struct KnownMemoryLock {
  KnownMemoryLock() {
    while (__atomic_test_and_set(&known_memory_locked, __ATOMIC_ACQUIRE)) {}
  }
  ~KnownMemoryLock() { __atomic_clear(&known_memory_locked, __ATOMIC_RELEASE); }
};
inline void note_memory(const void* pointer, size_t bytes, cudaMemoryType type, unsigned flags = 0) {
  if (!pointer) return;
  const KnownMemoryLock lock;
  known_memory = new KnownMemory{(const char*)pointer, bytes, type, flags, known_memory};
}
inline void forget_memory(const void* pointer) {
  const KnownMemoryLock lock;
  for (KnownMemory** at = &known_memory; *at; at = &(*at)->next) {
    if ((*at)->pointer != pointer) continue;
    KnownMemory* found = *at;
    *at = found->next;
    delete found;
    return;
  }
}
// Returns a copy of the entry that holds the pointer, with a null pointer if there is none.
inline KnownMemory find_memory(const void* pointer) {
  const KnownMemoryLock lock;
  for (const KnownMemory* at = known_memory; at; at = at->next)
    if (at->pointer <= (const char*)pointer && (const char*)pointer < at->pointer + at->bytes) return *at;
  return {};
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
