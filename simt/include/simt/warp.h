// Operations that threads of a block or lanes of a warp perform together: barriers, shuffles, votes, matches,
// reductions.
#pragma once

#include <simt/bfloat16.h>
#include <simt/half.h>
#include <simt/integers.h>
#include <simt/math.h>
#include <simt/runtime.h>

// ---- block ----

SIMT_INLINE void __syncthreads(int line = __builtin_LINE()) { simt::barrier(line); }
SIMT_INLINE int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return simt::barrier_vote(simt::Vote::count, predicate != 0, line);
}
SIMT_INLINE int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  return simt::barrier_vote(simt::Vote::all, predicate != 0, line);
}
SIMT_INLINE int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return simt::barrier_vote(simt::Vote::any, predicate != 0, line);
}

// ---- warp ----

SIMT_INLINE void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  simt::exchange(mask, 0, "__syncwarp()", line);
}
SIMT_INLINE unsigned __activemask(int line = __builtin_LINE()) { return simt::active_mask(line); }

namespace simt {

// The lane that a shuffle reads, by the PTX manual's rule for `shfl`: only the low five bits of lane, delta and
// width count, and a source outside the calling lane's segment of `width` lanes means the calling lane itself.
SIMT_INLINE unsigned segment_bits(int width) { return (unsigned)(32 - width) & 31u; }
SIMT_INLINE unsigned lane_of(unsigned self, int lane, int width) {
  const unsigned segment = segment_bits(width);
  return (self & segment) | ((unsigned)lane & 31u & ~segment);
}
SIMT_INLINE unsigned lane_below(unsigned self, unsigned delta, int width) {
  const int source = (int)self - (int)(delta & 31u);
  return source >= (int)(self & segment_bits(width)) ? (unsigned)source : self;
}
SIMT_INLINE unsigned lane_above(unsigned self, unsigned delta, int width) {
  const unsigned segment = segment_bits(width), source = self + (delta & 31u);
  return source <= ((self & segment) | (31u & ~segment)) ? source : self;
}
SIMT_INLINE unsigned lane_across(unsigned self, int lane_mask, int width) {
  const unsigned segment = segment_bits(width), source = self ^ ((unsigned)lane_mask & 31u);
  return source <= ((self & segment) | (31u & ~segment)) ? source : self;
}

// The value of a lane that does not take part: undefined on a GPU, so the poison of memory that was never written.
SIMT_INLINE std::uint64_t absent(std::size_t bytes) {
  return bytes == 2 ? shared_poison >> 16 : (std::uint64_t)shared_poison << 32 | shared_poison;
}

// Returns a lane's value in an exchange. Reading it is not an access of the kernel.
SIMT_OWN_PROBES std::uint64_t put_in(const std::uint64_t* value, unsigned lane) { return value[lane]; }

// In a checked build this copies a variable whose value a shuffle takes, which may be unwritten.
template <class T>
SIMT_OWN_PROBES T copied(const T& variable) {
  T value;
  __builtin_memcpy((void*)&value, (const void*)&variable, sizeof value);
  return value;
}

// Whether a value is the poison of a local variable that was never written.
SIMT_INLINE bool is_unwritten(std::uint64_t bits, std::size_t bytes) {
  return bytes == 8 ? bits == ((std::uint64_t)local_poison << 32 | local_poison) : bytes == 4 && bits == local_poison;
}

SIMT_OWN_PROBES std::uint64_t shuffled(unsigned mask, std::uint64_t bits, unsigned source, std::size_t bytes,
                                       const char* what, int line) {
  const Exchange met = exchange(mask, bits, what, line);
#ifdef SIMT_CHECK
  if (!(met.present >> source & 1))
    read_of_absent(mask, source, what, line);
  else if (source != lane() && is_unwritten(put_in(met.value, source), bytes))
    read_of_unwritten(source, what, line);
#endif
  return met.present >> source & 1 ? met.value[source] : absent(bytes);
}

// Lanes of the exchange that put in a value other than 0.
SIMT_OWN_PROBES unsigned voters(Exchange met) {
  unsigned yes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) yes |= (met.present >> lane & 1 && met.value[lane]) ? 1u << lane : 0;
  return yes;
}

// Lanes whose value equals the calling lane's bit for bit.
SIMT_OWN_PROBES unsigned matching(Exchange met, std::uint64_t bits) {
  unsigned same = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    same |= (met.present >> lane & 1 && met.value[lane] == bits) ? 1u << lane : 0;
  return same;
}

}  // namespace simt

// CUDA's own set of overloads; other types convert as with nvcc, or are refused.
#define SIMT_SHUFFLE(T, name, Operand, source)                                                                     \
  SIMT_INLINE T name(unsigned mask, T value, Operand operand, int width = warpSize, int line = __builtin_LINE()) { \
    std::uint64_t bits = 0;                                                                                        \
    __builtin_memcpy(&bits, &value, sizeof value);                                                                 \
    bits = simt::shuffled(mask, bits, simt::source(simt::lane(), operand, width), sizeof value, #name "()", line); \
    __builtin_memcpy((void*)&value, &bits, sizeof value);                                                          \
    return value;                                                                                                  \
  }
#define SIMT_SHUFFLES(T)                                  \
  SIMT_SHUFFLE(T, __shfl_sync, int, lane_of)              \
  SIMT_SHUFFLE(T, __shfl_up_sync, unsigned, lane_below)   \
  SIMT_SHUFFLE(T, __shfl_down_sync, unsigned, lane_above) \
  SIMT_SHUFFLE(T, __shfl_xor_sync, int, lane_across)
SIMT_SHUFFLES(int)
SIMT_SHUFFLES(unsigned)
SIMT_SHUFFLES(long)
SIMT_SHUFFLES(unsigned long)
SIMT_SHUFFLES(long long)
SIMT_SHUFFLES(unsigned long long)
SIMT_SHUFFLES(float)
SIMT_SHUFFLES(double)
SIMT_SHUFFLES(__half)
SIMT_SHUFFLES(__half2)
SIMT_SHUFFLES(__nv_bfloat16)
SIMT_SHUFFLES(__nv_bfloat162)
#undef SIMT_SHUFFLES
#undef SIMT_SHUFFLE

SIMT_INLINE unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return simt::voters(simt::exchange(mask, predicate != 0, "__ballot_sync()", line));
}
SIMT_INLINE int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return simt::voters(simt::exchange(mask, predicate != 0, "__any_sync()", line)) != 0;
}
SIMT_INLINE int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
  return simt::voters(simt::exchange(mask, predicate == 0, "__all_sync()", line)) == 0;
}

#define SIMT_MATCHES(T)                                                                                  \
  SIMT_INLINE unsigned __match_any_sync(unsigned mask, T value, int line = __builtin_LINE()) {           \
    std::uint64_t bits = 0;                                                                              \
    __builtin_memcpy(&bits, &value, sizeof value);                                                       \
    return simt::matching(simt::exchange(mask, bits, "__match_any_sync()", line), bits);                 \
  }                                                                                                      \
  SIMT_INLINE unsigned __match_all_sync(unsigned mask, T value, int* all, int line = __builtin_LINE()) { \
    std::uint64_t bits = 0;                                                                              \
    __builtin_memcpy(&bits, &value, sizeof value);                                                       \
    const simt::Exchange met = simt::exchange(mask, bits, "__match_all_sync()", line);                   \
    *all = simt::matching(met, bits) == met.present;                                                     \
    return *all ? met.present : 0;                                                                       \
  }
SIMT_MATCHES(int)
SIMT_MATCHES(unsigned)
SIMT_MATCHES(long)
SIMT_MATCHES(unsigned long)
SIMT_MATCHES(long long)
SIMT_MATCHES(unsigned long long)
SIMT_MATCHES(float)
SIMT_MATCHES(double)
#undef SIMT_MATCHES

#define SIMT_REDUCE(T, name, expression)                                                \
  SIMT_OWN_PROBES T name(unsigned mask, T value, int line = __builtin_LINE()) {         \
    const simt::Exchange met = simt::exchange(mask, (unsigned)value, #name "()", line); \
    const unsigned self = simt::lane();                                                 \
    T result = value;                                                                   \
    for (unsigned lane = 0; lane < 32; ++lane) {                                        \
      const T other = (T)met.value[lane];                                               \
      if (lane != self && met.present >> lane & 1) result = (T)(expression);            \
    }                                                                                   \
    return result;                                                                      \
  }
SIMT_REDUCE(unsigned, __reduce_add_sync, result + other)
SIMT_REDUCE(int, __reduce_add_sync, (unsigned)result + (unsigned)other)
SIMT_REDUCE(unsigned, __reduce_min_sync, other < result ? other : result)
SIMT_REDUCE(int, __reduce_min_sync, other < result ? other : result)
SIMT_REDUCE(unsigned, __reduce_max_sync, other > result ? other : result)
SIMT_REDUCE(int, __reduce_max_sync, other > result ? other : result)
SIMT_REDUCE(unsigned, __reduce_and_sync, result& other)
SIMT_REDUCE(unsigned, __reduce_or_sync, result | other)
SIMT_REDUCE(unsigned, __reduce_xor_sync, result ^ other)
#undef SIMT_REDUCE
