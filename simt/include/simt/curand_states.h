// cuRAND's generators XORWOW, Philox4x32-10 and MRG32k3a in kernels: their states, seeds, jumps and 32-bit numbers. They
// give the numbers that the library's device functions give.
#pragma once

#include <simt/curand_jumps.h>
#include <simt/runtime.h>
#include <simt/types.h>

namespace simt {
// What curand_normal and curand_log_normal keep for the next call: the second number of a pair.
enum KeptNumber { kept_nothing = 0, kept_normal = 1, kept_log_normal = 2 };
}  // namespace simt

// The members have the sizes and the order of the library's, so that a program can allocate and copy states.
#define SIMT_KEPT_NUMBERS                    \
  int boxmuller_flag, boxmuller_flag_double; \
  float boxmuller_extra;                     \
  double boxmuller_extra_double;

struct curandStateXORWOW {
  unsigned d, v[5];
  SIMT_KEPT_NUMBERS
};
struct curandStatePhilox4_32_10 {
  uint4 ctr, output;  // output: what the counter gives, of which STATE numbers are used
  uint2 key;
  unsigned STATE;
  SIMT_KEPT_NUMBERS
};
struct curandStateMRG32k3a {
  unsigned s1[3], s2[3];
  SIMT_KEPT_NUMBERS
};
#undef SIMT_KEPT_NUMBERS

typedef struct curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef struct curandStateMRG32k3a curandStateMRG32k3a_t;

namespace simt {
template <class S>
SIMT_INLINE void forget_kept(S* state) {
  state->boxmuller_flag = state->boxmuller_flag_double = kept_nothing;
  state->boxmuller_extra = 0;
  state->boxmuller_extra_double = 0;
}
SIMT_INLINE unsigned low_half(unsigned long long x) { return (unsigned)x; }
SIMT_INLINE unsigned high_half(unsigned long long x) { return (unsigned)(x >> 32); }
SIMT_INLINE unsigned long long join_halves(unsigned low, unsigned high) { return (unsigned long long)high << 32 | low; }
}  // namespace simt

// ---- XORWOW: Marsaglia's xorshift of 160 bits, plus a Weyl sequence ----

namespace simt {
inline constexpr unsigned weyl_step = 362437;
SIMT_INLINE void jump_state(curandStateXORWOW* state, unsigned long long count, int unit) {
  const unsigned* v = state->v;
  const XorwowWords to = jump_xorwow({{v[0], v[1], v[2], v[3], v[4]}}, count, unit);
  for (int i = 0; i < 5; ++i) state->v[i] = to.v[i];
}
}  // namespace simt

SIMT_INLINE void skipahead(unsigned long long count, curandStateXORWOW_t* state) {
  simt::jump_state(state, count, 0);
  state->d += simt::weyl_step * (unsigned)count;
}
SIMT_INLINE void skipahead_sequence(unsigned long long count, curandStateXORWOW_t* state) {
  simt::jump_state(state, count, simt::XorwowJumps::sequence);  // the Weyl sequence repeats after 2^32 steps
}
SIMT_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                             curandStateXORWOW_t* state) {
  // Marsaglia's initial words, changed by the two halves of the seed.
  const unsigned low = 1099087573u * (simt::low_half(seed) ^ 0xaad26b49u);
  const unsigned high = 2591861531u * (simt::high_half(seed) ^ 0xf7dcefddu);
  const simt::XorwowWords seeded = {
      {123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low}};
  const simt::XorwowWords to =
      simt::jump_xorwow(simt::jump_xorwow(seeded, subsequence, simt::XorwowJumps::sequence), offset, 0);
  state->d = 6615241u + low + high + simt::weyl_step * (unsigned)offset;
  for (int i = 0; i < 5; ++i) state->v[i] = to.v[i];
  simt::forget_kept(state);
}
SIMT_INLINE unsigned curand(curandStateXORWOW_t* state) {
  const unsigned first = state->v[0], last = state->v[4], t = first ^ first >> 2;
  for (int i = 0; i < 3; ++i) state->v[i] = state->v[i + 1];
  state->v[3] = last;
  const unsigned next = last ^ last << 4 ^ t ^ t << 1, d = state->d + simt::weyl_step;
  state->v[4] = next;
  state->d = d;
  return next + d;
}

// ---- Philox4x32-10: ten rounds on a counter of 128 bits, as published with Random123 ----

namespace simt {
SIMT_INLINE uint4 philox(uint4 counter, uint2 key) {
  unsigned x = counter.x, y = counter.y, z = counter.z, w = counter.w, k0 = key.x, k1 = key.y;
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * x, b = 0xCD9E8D57ull * z;
    x = high_half(b) ^ y ^ k0;
    z = high_half(a) ^ w ^ k1;
    y = low_half(b);
    w = low_half(a);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {x, y, z, w};
}
// Adds to the counter and computes its output.
SIMT_INLINE uint4 advance(curandStatePhilox4_32_10* state, unsigned long long low, unsigned long long high) {
  uint4 counter = state->ctr;
  const unsigned long long before = join_halves(counter.x, counter.y), sum = before + low;
  const unsigned long long top = join_halves(counter.z, counter.w) + high + (sum < before);
  counter = {low_half(sum), high_half(sum), low_half(top), high_half(top)};
  const uint4 output = philox(counter, state->key);
  state->ctr = counter;
  state->output = output;
  return output;
}
}  // namespace simt

SIMT_INLINE void skipahead(unsigned long long count, curandStatePhilox4_32_10_t* state) {
  const unsigned used = state->STATE + (unsigned)(count & 3);
  simt::advance(state, count / 4 + used / 4, 0);
  state->STATE = used % 4;
}
SIMT_INLINE void skipahead_sequence(unsigned long long count, curandStatePhilox4_32_10_t* state) {
  simt::advance(state, 0, count);
}
SIMT_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                             curandStatePhilox4_32_10_t* state) {
  const uint2 key = {simt::low_half(seed), simt::high_half(seed)};
  const uint4 counter = {simt::low_half(offset / 4), simt::high_half(offset / 4), simt::low_half(subsequence),
                         simt::high_half(subsequence)};
  state->ctr = counter;
  state->output = simt::philox(counter, key);
  state->key = key;
  state->STATE = (unsigned)(offset & 3);
  simt::forget_kept(state);
}
SIMT_INLINE unsigned curand(curandStatePhilox4_32_10_t* state) {
  const unsigned used = state->STATE;
  const unsigned number = used == 0   ? state->output.x
                          : used == 1 ? state->output.y
                          : used == 2 ? state->output.z
                                      : state->output.w;
  if (used == 3) simt::advance(state, 1, 0);
  state->STATE = (used + 1) % 4;
  return number;
}
SIMT_INLINE uint4 curand4(curandStatePhilox4_32_10_t* state) {
  const uint4 a = state->output;
  const unsigned used = state->STATE;
  const uint4 b = simt::advance(state, 1, 0);
  if (used == 0) return a;
  if (used == 1) return {a.y, a.z, a.w, b.x};
  if (used == 2) return {a.z, a.w, b.x, b.y};
  return {a.w, b.x, b.y, b.z};
}

// ---- MRG32k3a: L'Ecuyer's combination of two recurrences ----

namespace simt {
SIMT_INLINE void jump_state(curandStateMRG32k3a* state, unsigned long long count, int unit) {
  const unsigned *a = state->s1, *b = state->s2;
  const MrgNumbers to = jump_mrg({{{a[0], a[1], a[2]}, {b[0], b[1], b[2]}}}, count, unit);
  for (int i = 0; i < 3; ++i) {
    state->s1[i] = to.s[0][i];
    state->s2[i] = to.s[1][i];
  }
}
// Returns the next number, from 1 to the first modulus.
SIMT_INLINE unsigned next_of(curandStateMRG32k3a* state) {
  const unsigned m1 = MrgJumps::modulus[0], m2 = MrgJumps::modulus[1];
  const unsigned a0 = state->s1[0], a1 = state->s1[1], a2 = state->s1[2];
  const unsigned b0 = state->s2[0], b1 = state->s2[1], b2 = state->s2[2];
  const unsigned a = (unsigned)((1403580ull * a1 + 810728ull * (m1 - a0)) % m1);
  const unsigned b = (unsigned)((527612ull * b2 + 1370589ull * (m2 - b0)) % m2);
  state->s1[0] = a1, state->s1[1] = a2, state->s1[2] = a;
  state->s2[0] = b1, state->s2[1] = b2, state->s2[2] = b;
  return a > b ? a - b : a - b + m1;
}
}  // namespace simt

SIMT_INLINE void skipahead(unsigned long long count, curandStateMRG32k3a_t* state) {
  simt::jump_state(state, count, 0);
}
SIMT_INLINE void skipahead_subsequence(unsigned long long count, curandStateMRG32k3a_t* state) {
  simt::jump_state(state, count, simt::MrgJumps::subsequence);
}
SIMT_INLINE void skipahead_sequence(unsigned long long count, curandStateMRG32k3a_t* state) {
  simt::jump_state(state, count, simt::MrgJumps::sequence);
}
SIMT_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                             curandStateMRG32k3a_t* state) {
  const unsigned start = 12345;
  simt::MrgNumbers from = {{{start, start, start}, {start, start, start}}};
  const unsigned half[2] = {simt::low_half(seed) ^ 0x55555555u, simt::high_half(seed) ^ 0xAAAAAAAAu};
  if (seed)  // the halves change the numbers in turns
    for (int i = 0; i < 6; ++i)
      from.s[i / 3][i % 3] = (unsigned)((unsigned long long)half[i % 2] * start % simt::MrgJumps::modulus[i / 3]);
  const simt::MrgNumbers to = simt::jump_mrg(simt::jump_mrg(from, subsequence, simt::MrgJumps::subsequence), offset, 0);
  for (int i = 0; i < 3; ++i) {
    state->s1[i] = to.s[0][i];
    state->s2[i] = to.s[1][i];
  }
  simt::forget_kept(state);
}
SIMT_INLINE unsigned curand(curandStateMRG32k3a_t* state) {
  // Stretches the numbers to all of 32 bits; the largest is clamped, as a GPU's conversion does.
  const double stretched = simt::next_of(state) * 1.000000048662;
  return stretched < 4294967296.0 ? (unsigned)stretched : 0xffffffffu;
}
