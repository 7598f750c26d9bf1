// CUDA's atomic functions: blocks run in parallel on operating-system threads, so these are the processor's own.
#pragma once

#include <simt/bfloat16.h>
#include <simt/half.h>
#include <simt/probe.h>
#include <simt/types.h>

// Each function as CUDA declares it: the plain form, _block and _system. All return the value from before, and are
// relaxed: like CUDA's, they order nothing but themselves.
#define SIMT_ATOMIC_AS(name, kind, T, ...)                     \
  SIMT_OWN_PROBES T name(T* address, T value) {                \
    SIMT_PROBE_ATOMIC(address, sizeof(T), simt::Atomic::kind); \
    __VA_ARGS__                                                \
  }
#define SIMT_ATOMIC(name, kind, T, ...)              \
  SIMT_ATOMIC_AS(name, kind, T, __VA_ARGS__)         \
  SIMT_ATOMIC_AS(name##_block, kind, T, __VA_ARGS__) \
  SIMT_ATOMIC_AS(name##_system, kind, T, __VA_ARGS__)

// The processor's read-modify-write instruction.
#define SIMT_ATOMIC_FETCH(name, kind, T, builtin) \
  SIMT_ATOMIC(name, kind, T, return builtin(address, value, __ATOMIC_RELAXED);)

// Where there is no instruction: compute from the old value, and again if another thread came in between.
#define SIMT_ATOMIC_LOOP(name, kind, T, expression)                                                                 \
  SIMT_ATOMIC(name, kind, T, T old; T next; __atomic_load(address, &old, __ATOMIC_RELAXED); do next = (expression); \
              while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));   \
              return old;)

SIMT_ATOMIC_FETCH(atomicAdd, add, int, __atomic_fetch_add)
SIMT_ATOMIC_FETCH(atomicAdd, add, unsigned, __atomic_fetch_add)
SIMT_ATOMIC_FETCH(atomicAdd, add, unsigned long long, __atomic_fetch_add)
SIMT_ATOMIC_LOOP(atomicAdd, add, float, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, add, double, old + value)
SIMT_ATOMIC_LOOP(atomicAdd, add, __half, __hadd(old, value))
SIMT_ATOMIC_LOOP(atomicAdd, add, __half2, __hadd2(old, value))
SIMT_ATOMIC_LOOP(atomicAdd, add, __nv_bfloat16, __hadd(old, value))
SIMT_ATOMIC_LOOP(atomicAdd, add, __nv_bfloat162, __hadd2(old, value))

SIMT_ATOMIC_FETCH(atomicSub, sub, int, __atomic_fetch_sub)
SIMT_ATOMIC_FETCH(atomicSub, sub, unsigned, __atomic_fetch_sub)

SIMT_ATOMIC_FETCH(atomicAnd, and_, int, __atomic_fetch_and)
SIMT_ATOMIC_FETCH(atomicAnd, and_, unsigned, __atomic_fetch_and)
SIMT_ATOMIC_FETCH(atomicAnd, and_, unsigned long long, __atomic_fetch_and)
SIMT_ATOMIC_FETCH(atomicOr, or_, int, __atomic_fetch_or)
SIMT_ATOMIC_FETCH(atomicOr, or_, unsigned, __atomic_fetch_or)
SIMT_ATOMIC_FETCH(atomicOr, or_, unsigned long long, __atomic_fetch_or)
SIMT_ATOMIC_FETCH(atomicXor, xor_, int, __atomic_fetch_xor)
SIMT_ATOMIC_FETCH(atomicXor, xor_, unsigned, __atomic_fetch_xor)
SIMT_ATOMIC_FETCH(atomicXor, xor_, unsigned long long, __atomic_fetch_xor)

SIMT_ATOMIC_FETCH(atomicExch, exchange, int, __atomic_exchange_n)
SIMT_ATOMIC_FETCH(atomicExch, exchange, unsigned, __atomic_exchange_n)
SIMT_ATOMIC_FETCH(atomicExch, exchange, unsigned long long, __atomic_exchange_n)
SIMT_ATOMIC(atomicExch, exchange, float, float old; __atomic_exchange(address, &value, &old, __ATOMIC_RELAXED);
            return old;)

#define SIMT_ATOMIC_EXTREMES(T)                                  \
  SIMT_ATOMIC_LOOP(atomicMin, min, T, value < old ? value : old) \
  SIMT_ATOMIC_LOOP(atomicMax, max, T, value > old ? value : old)
SIMT_ATOMIC_EXTREMES(int)
SIMT_ATOMIC_EXTREMES(unsigned)
SIMT_ATOMIC_EXTREMES(long long)
SIMT_ATOMIC_EXTREMES(unsigned long long)
#undef SIMT_ATOMIC_EXTREMES

SIMT_ATOMIC_LOOP(atomicInc, inc, unsigned, old >= value ? 0 : old + 1)            // counts 0 … value, then 0 again
SIMT_ATOMIC_LOOP(atomicDec, dec, unsigned, old == 0 || old > value ? value : old - 1)

#define SIMT_ATOMIC_CAS(name, T)                                                                      \
  SIMT_OWN_PROBES T name(T* address, T compare, T value) {                                            \
    SIMT_PROBE_ATOMIC(address, sizeof(T), simt::Atomic::compare);                                     \
    __atomic_compare_exchange_n(address, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return compare;                                                                                   \
  }
#define SIMT_ATOMIC_CAS_ALL(T)        \
  SIMT_ATOMIC_CAS(atomicCAS, T)       \
  SIMT_ATOMIC_CAS(atomicCAS_block, T) \
  SIMT_ATOMIC_CAS(atomicCAS_system, T)
SIMT_ATOMIC_CAS_ALL(int)
SIMT_ATOMIC_CAS_ALL(unsigned)
SIMT_ATOMIC_CAS_ALL(unsigned short)
SIMT_ATOMIC_CAS_ALL(unsigned long long)
#undef SIMT_ATOMIC_CAS_ALL
#undef SIMT_ATOMIC_CAS

// Vectors are added element by element: each element is atomic, the whole is not.
namespace simt {
SIMT_NO_PROBES SIMT_INLINE float add_element(float* address, float value) {
  float old, next;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  do next = old + value;
  while (!__atomic_compare_exchange(address, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
}  // namespace simt
SIMT_ATOMIC(atomicAdd, add, float2,
            return {simt::add_element(&address->x, value.x), simt::add_element(&address->y, value.y)};)
SIMT_ATOMIC(atomicAdd, add, float4,
            return {simt::add_element(&address->x, value.x), simt::add_element(&address->y, value.y),
                    simt::add_element(&address->z, value.z), simt::add_element(&address->w, value.w)};)

#undef SIMT_ATOMIC_LOOP
#undef SIMT_ATOMIC_FETCH
#undef SIMT_ATOMIC
#undef SIMT_ATOMIC_AS
