// CUDA's memory pools: how much of each is in use, their attributes, and the pool of the device. The memory itself comes
// from cudaMalloc.
#pragma once

#include <simt/cuda_errors.h>
#include <simt/cuda_location.h>
#include <simt/live_list.h>

struct CUmemPoolHandle_st {
  unsigned long long threshold = 0, reserved = 0, reserved_high = 0, used = 0, used_high = 0;
  int reuse[3] = {1, 1, 1};
};
typedef struct CUmemPoolHandle_st* cudaMemPool_t;

enum cudaMemPoolAttr {
  cudaMemPoolReuseFollowEventDependencies = 1,
  cudaMemPoolReuseAllowOpportunistic = 2,
  cudaMemPoolReuseAllowInternalDependencies = 3,
  cudaMemPoolAttrReleaseThreshold = 4,
  cudaMemPoolAttrReservedMemCurrent = 5,
  cudaMemPoolAttrReservedMemHigh = 6,
  cudaMemPoolAttrUsedMemCurrent = 7,
  cudaMemPoolAttrUsedMemHigh = 8,
};
enum cudaMemAllocationType { cudaMemAllocationTypeInvalid = 0, cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0, cudaMemHandleTypePosixFileDescriptor = 1 };
enum cudaMemAccessFlags {
  cudaMemAccessFlagsProtNone = 0,
  cudaMemAccessFlagsProtRead = 1,
  cudaMemAccessFlagsProtReadWrite = 3
};
struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  cudaMemAllocationHandleType handleTypes;
  cudaMemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
};
struct cudaMemAccessDesc {
  cudaMemLocation location;
  cudaMemAccessFlags flags;
};

namespace simt {
inline constexpr unsigned long long pool_step = 32ull << 20;  // bytes by which a pool grows

struct Pooled {
  void* pointer;
  size_t bytes;
  cudaMemPool_t pool;
};
inline CUmemPoolHandle_st default_pool;
inline cudaMemPool_t current_pool = &default_pool;
inline LiveList<Pooled> pooled;  // the live allocations of all pools
inline bool pools_locked = false;

inline unsigned long long round_to_step(unsigned long long bytes) {
  return (bytes + pool_step - 1) / pool_step * pool_step;
}
// Gives back what a pool holds above the larger of `kept` bytes and what is in use.
inline void trim_pool(cudaMemPool_t pool, unsigned long long kept) {
  if (kept >= pool->reserved) return;
  const unsigned long long needed = round_to_step(pool->used > kept ? pool->used : kept);
  if (pool->reserved > needed) pool->reserved = needed;
}
inline void note_pooled(void* pointer, size_t bytes, cudaMemPool_t pool) {
  const SpinLock lock(pools_locked);
  pooled.add({pointer, bytes, pool});
  pool->used += bytes;
  if (pool->used > pool->used_high) pool->used_high = pool->used;
  if (round_to_step(pool->used) > pool->reserved) pool->reserved = round_to_step(pool->used);
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
}
// Called before memory is freed; does nothing for memory of no pool.
inline void forget_pooled(void* pointer) {
  const SpinLock lock(pools_locked);
  const Pooled found = pooled.take(pointer);
  if (!found.pointer) return;
  found.pool->used -= found.bytes;
  trim_pool(found.pool, found.pool->threshold);
}
}  // namespace simt

inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int ordinal) {
  *pool = &simt::default_pool;
  return simt::only_device_0(ordinal);
}
inline cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int ordinal) {
  *pool = simt::current_pool;
  return simt::only_device_0(ordinal);
}
inline cudaError_t cudaDeviceSetMemPool(int ordinal, cudaMemPool_t pool) {
  if (!pool) return simt::failed(cudaErrorInvalidValue, "cudaDeviceSetMemPool got no pool");
  simt::current_pool = pool;
  return simt::only_device_0(ordinal);
}
inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  if (properties->allocType != cudaMemAllocationTypePinned)
    return simt::failed(cudaErrorInvalidValue, "the allocType of a memory pool must be cudaMemAllocationTypePinned");
  *pool = new CUmemPoolHandle_st;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  if (!pool || pool == &simt::default_pool)
    return simt::failed(cudaErrorInvalidValue, "the device's default memory pool can't be destroyed");
  if (simt::current_pool == pool) simt::current_pool = &simt::default_pool;
  if (!pool->used) delete pool;  // otherwise its memory still names it
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t kept) {
  simt::trim_pool(pool, kept);
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  auto* bytes = (unsigned long long*)value;
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
    case cudaMemPoolReuseAllowOpportunistic:
    case cudaMemPoolReuseAllowInternalDependencies: *(int*)value = pool->reuse[attribute - 1]; break;
    case cudaMemPoolAttrReleaseThreshold: *bytes = pool->threshold; break;
    case cudaMemPoolAttrReservedMemCurrent: *bytes = pool->reserved; break;
    case cudaMemPoolAttrReservedMemHigh: *bytes = pool->reserved_high; break;
    case cudaMemPoolAttrUsedMemCurrent: *bytes = pool->used; break;
    case cudaMemPoolAttrUsedMemHigh: *bytes = pool->used_high; break;
    default: return simt::failed(cudaErrorInvalidValue, "a memory pool has no such attribute");
  }
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const bool is_high = attribute == cudaMemPoolAttrReservedMemHigh || attribute == cudaMemPoolAttrUsedMemHigh;
  if (attribute >= cudaMemPoolReuseFollowEventDependencies && attribute <= cudaMemPoolReuseAllowInternalDependencies)
    pool->reuse[attribute - 1] = *(int*)value;
  else if (attribute == cudaMemPoolAttrReleaseThreshold)
    pool->threshold = *(unsigned long long*)value;
  else if (is_high && *(unsigned long long*)value == 0)
    (attribute == cudaMemPoolAttrUsedMemHigh ? pool->used_high : pool->reserved_high) = 0;
  else
    return simt::failed(cudaErrorInvalidValue, "this attribute of a memory pool can't be set, or only to 0");
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc*, size_t) { return cudaSuccess; }
inline cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t, cudaMemLocation*) {
  *flags = cudaMemAccessFlagsProtReadWrite;
  return cudaSuccess;
}
