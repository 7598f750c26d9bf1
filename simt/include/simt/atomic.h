// CUDA's atomic functions: blocks run in parallel on operating-system threads, so these are the processor's own.
#pragma once

#include <simt/bfloat16.h>
#include <simt/half.h>
#include <simt/types.h>

// Each function as CUDA declares it: the plain form, _block and _system. All return the value from before, and are
// relaxed: like CUDA's, they order nothing but themselves.
#define SIMT_ATOMIC(name, T, ...)                                \
  SIMT_INLINE T name(T* address, T value) __VA_ARGS__            \
  SIMT_INLINE T name##_block(T* address, T value) __VA_ARGS__    \
  SIMT_INLINE T name##_system(T* address, T value) __VA_ARGS__

// The processor's read-modify-write instruction.
#define SIMT_ATOMIC_FETCH(name, T, builtin) SIMT_ATOMIC(name, T, { return builtin(address, value, __ATOMIC_RELAXED); })

// Where there is no instruction: compute from the old value, and again if another thread came in between.
#define SIMT_ATOMIC_LOOP(name, T, expression)                                                             \
  SIMT_ATOMIC(name, T, {                                                                                  \
    T old, next;                                                                                          \
    __atomic_load(address, &old, __ATOMIC_RELAXED);                                                       \
    do next = (expression);                                                                               \
    while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));   \
    return old;                                                                                           \
  })

SIMT_ATOMIC_FETCH(atomicAdd, int, __atomic_fetch_add)
SIMT_ATOMIC_FETCH(atomicAdd, unsigned, __atomic_fetch_add)
SIMT_ATOMIC_FETCH(atomicAdd, unsigned long long, __atomic_fetch_add)
SIMT_ATOMIC_LOOP(atomicAdd, float, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, double, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, __half, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, __half2, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, __nv_bfloat16, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, __nv_bfloat162, old + value)

SIMT_ATOMIC_FETCH(atomicSub, int, __atomic_fetch_sub)
SIMT_ATOMIC_FETCH(atomicSub, unsigned, __atomic_fetch_sub)

SIMT_ATOMIC_FETCH(atomicAnd, int, __atomic_fetch_and)
SIMT_ATOMIC_FETCH(atomicAnd, unsigned, __atomic_fetch_and)
SIMT_ATOMIC_FETCH(atomicAnd, unsigned long long, __atomic_fetch_and)
SIMT_ATOMIC_FETCH(atomicOr, int, __atomic_fetch_or)
SIMT_ATOMIC_FETCH(atomicOr, unsigned, __atomic_fetch_or)
SIMT_ATOMIC_FETCH(atomicOr, unsigned long long, __atomic_fetch_or)
SIMT_ATOMIC_FETCH(atomicXor, int, __atomic_fetch_xor)
SIMT_ATOMIC_FETCH(atomicXor, unsigned, __atomic_fetch_xor)
SIMT_ATOMIC_FETCH(atomicXor, unsigned long long, __atomic_fetch_xor)

SIMT_ATOMIC_FETCH(atomicExch, int, __atomic_exchange_n)
SIMT_ATOMIC_FETCH(atomicExch, unsigned, __atomic_exchange_n)
SIMT_ATOMIC_FETCH(atomicExch, unsigned long long, __atomic_exchange_n)
SIMT_ATOMIC(atomicExch, float, {
  float old;
  __atomic_exchange(address, &value, &old, __ATOMIC_RELAXED);
  return old;
})

#define SIMT_ATOMIC_EXTREMES(T)                                 \
  SIMT_ATOMIC_LOOP(atomicMin, T, value < old ? value : old)     \
  SIMT_ATOMIC_LOOP(atomicMax, T, value > old ? value : old)
SIMT_ATOMIC_EXTREMES(int)
SIMT_ATOMIC_EXTREMES(unsigned)
SIMT_ATOMIC_EXTREMES(long long)
SIMT_ATOMIC_EXTREMES(unsigned long long)
#undef SIMT_ATOMIC_EXTREMES

SIMT_ATOMIC_LOOP(atomicInc, unsigned, old >= value ? 0 : old + 1)                       // counts 0 … value, then 0 again
SIMT_ATOMIC_LOOP(atomicDec, unsigned, old == 0 || old > value ? value : old - 1)

#define SIMT_ATOMIC_CAS(name, T)                                                                            \
  SIMT_INLINE T name(T* address, T compare, T value) {                                                      \
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);       \
    return compare;                                                                                         \
  }
#define SIMT_ATOMIC_CAS_ALL(T)           \
  SIMT_ATOMIC_CAS(atomicCAS, T)          \
  SIMT_ATOMIC_CAS(atomicCAS_block, T)    \
  SIMT_ATOMIC_CAS(atomicCAS_system, T)
SIMT_ATOMIC_CAS_ALL(int)
SIMT_ATOMIC_CAS_ALL(unsigned)
SIMT_ATOMIC_CAS_ALL(unsigned short)
SIMT_ATOMIC_CAS_ALL(unsigned long long)
#undef SIMT_ATOMIC_CAS_ALL
#undef SIMT_ATOMIC_CAS

// Vectors are added element by element: each element is atomic, the whole is not.
SIMT_ATOMIC(atomicAdd, float2, { return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y)}; })
SIMT_ATOMIC(atomicAdd, float4, {
  return {atomicAdd(&address->x, value.x), atomicAdd(&address->y, value.y), atomicAdd(&address->z, value.z),
          atomicAdd(&address->w, value.w)};
})

#undef SIMT_ATOMIC_LOOP
#undef SIMT_ATOMIC_FETCH
#undef SIMT_ATOMIC
