// Loads and stores with a cache hint, fences, clocks, and hints to the compiler or the debugger.
#pragma once

#include <time.h>

#include <simt/host.h>
#include <simt/probe.h>
#include <simt/runtime.h>
#include <simt/types.h>

// ---- loads and stores with a cache hint, which a CPU has no use for ----

namespace simt {
template <class T> struct Same {
  typedef T type;
};   // keeps a parameter from taking part in deduction

// The types that CUDA loads and stores this way; half.h and bfloat16.h add theirs.
template <class T> inline constexpr bool cached = false;
#define SIMT_CACHED(T) template <> inline constexpr bool cached<T> = true;
#define SIMT_CACHED_VECTORS(T, name) SIMT_CACHED(T) SIMT_CACHED(name##2) SIMT_CACHED(name##4)
SIMT_CACHED(char)
SIMT_CACHED_VECTORS(signed char, char)
SIMT_CACHED_VECTORS(unsigned char, uchar)
SIMT_CACHED_VECTORS(short, short)
SIMT_CACHED_VECTORS(unsigned short, ushort)
SIMT_CACHED_VECTORS(int, int)
SIMT_CACHED_VECTORS(unsigned, uint)
SIMT_CACHED_VECTORS(float, float)
SIMT_CACHED(long)
SIMT_CACHED(unsigned long)
SIMT_CACHED(long long)
SIMT_CACHED(unsigned long long)
SIMT_CACHED(longlong2)
SIMT_CACHED(ulonglong2)
SIMT_CACHED(double)
SIMT_CACHED(double2)
#undef SIMT_CACHED_VECTORS
#undef SIMT_CACHED
}  // namespace simt

#define SIMT_ONLY_CACHED(name)   \
  static_assert(simt::cached<T>, \
                #name " takes numbers and vectors of 2 or 4 of up to 16 bytes, not structs, bool or float3")
#define SIMT_LOAD(name)                  \
  template <class T>                     \
  SIMT_INLINE T name(const T* pointer) { \
    SIMT_ONLY_CACHED(name);              \
    return *pointer;                     \
  }
#define SIMT_STORE(name)                                                  \
  template <class T>                                                      \
  SIMT_INLINE void name(T* pointer, typename simt::Same<T>::type value) { \
    SIMT_ONLY_CACHED(name);                                               \
    *pointer = value;                                                     \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE
#undef SIMT_LOAD
#undef SIMT_ONLY_CACHED

// ---- fences, clocks, hints ----

#define SIMT_FENCE(name, scope, fence)    \
  SIMT_OWN_PROBES void name() {           \
    SIMT_PROBE_FENCE(simt::Scope::scope); \
    fence(__ATOMIC_SEQ_CST);              \
  }
SIMT_FENCE(__threadfence, device, __atomic_thread_fence)
SIMT_FENCE(__threadfence_block, block, __atomic_signal_fence)      // a block runs on one thread
SIMT_FENCE(__threadfence_system, system, __atomic_thread_fence)
#undef SIMT_FENCE

namespace simt {
inline unsigned long long read_nanoseconds(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}
}  // namespace simt

// The time that has passed, in cycles of the simulated GPU.
inline long long clock64() {
  const unsigned __int128 nanoseconds = simt::read_nanoseconds(CLOCK_MONOTONIC);
  return (long long)(nanoseconds * (unsigned)simt::device().clock_khz / 1000000u);
}
namespace simt {
// clock() in a macro, which host and device code may use.
inline clock_t clock_of_either() { return in_kernel() ? (clock_t)clock64() : ::clock(); }
}  // namespace simt
inline void __nanosleep(unsigned nanoseconds) {
  const timespec time = {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)};
  ::nanosleep(&time, nullptr);
}

#ifndef __clang__      // which has it
SIMT_INLINE void __builtin_assume(bool condition) {
  if (!condition) __builtin_unreachable();
}
#endif
[[noreturn]] inline void __trap(int line = __builtin_LINE()) { simt::trap(line); }
SIMT_INLINE void __brkpt() {}
SIMT_INLINE void __prof_trigger(int) {}
