// cuRAND's Sobol generators of 32 and 64 bits in kernels, plain and scrambled, in the library's Gray-code order. A number
// is the exclusive or of those direction vectors that the bits of its index's Gray code select, and of the scramble.
#pragma once

#include <simt/runtime.h>
#include <simt/types.h>

typedef unsigned int curandDirectionVectors32_t[32];
typedef unsigned long long curandDirectionVectors64_t[64];

namespace simt {
// The members have the sizes and the order of the library's, so that a program can allocate and copy states.
template <class Word, bool is_scrambled>
struct SobolState {
  static constexpr int bits = 8 * sizeof(Word);
  Word i, x, c;  // the next number's index, that number, the scramble
  Word direction_vectors[bits];
};
template <class S> inline constexpr bool is_sobol = false;
template <class Word, bool is_scrambled> inline constexpr bool is_sobol<SobolState<Word, is_scrambled>> = true;
// Whether a generator makes one result of each number: those for which it is true, and MT19937.
template <class S> inline constexpr bool is_single = is_sobol<S>;
template <class S>
concept SingleState = is_single<S>;

template <class Word, bool is_scrambled>
SIMT_INLINE void start_sobol(SobolState<Word, is_scrambled>* state, const Word* vectors, Word scramble, Word offset,
                             int line) {
  state->i = offset;
  state->c = scramble;
  Word x = scramble;
  if (!vectors[0]) device_assert("direction_vectors[0] != 0 (simt has Sobol's first 1,111 dimensions)", line);
  for (int k = 0; k < state->bits; ++k) {
    const Word vector = vectors[k];
    state->direction_vectors[k] = vector;
    if ((offset ^ offset >> 1) >> k & 1) x ^= vector;
  }
  state->x = x;
}
template <class Word, bool is_scrambled>
SIMT_INLINE void skip_sobol(SobolState<Word, is_scrambled>* state, Word count) {
  const Word from = state->i, to = from + count;
  Word changed = from ^ from >> 1 ^ to ^ to >> 1, x = state->x;
  for (; changed; changed &= changed - 1) x ^= state->direction_vectors[__builtin_ctzll(changed)];
  state->i = to;
  state->x = x;
}
}  // namespace simt

typedef simt::SobolState<unsigned, false> curandStateSobol32, curandStateSobol32_t;
typedef simt::SobolState<unsigned, true> curandStateScrambledSobol32, curandStateScrambledSobol32_t;
typedef simt::SobolState<unsigned long long, false> curandStateSobol64, curandStateSobol64_t;
typedef simt::SobolState<unsigned long long, true> curandStateScrambledSobol64, curandStateScrambledSobol64_t;

SIMT_INLINE void curand_init(const unsigned* direction_vectors, unsigned offset, curandStateSobol32_t* state,
                             int line = __builtin_LINE()) {
  simt::start_sobol(state, direction_vectors, 0u, offset, line);
}
SIMT_INLINE void curand_init(const unsigned* direction_vectors, unsigned scramble_c, unsigned offset,
                             curandStateScrambledSobol32_t* state, int line = __builtin_LINE()) {
  simt::start_sobol(state, direction_vectors, scramble_c, offset, line);
}
SIMT_INLINE void curand_init(const unsigned long long* direction_vectors, unsigned long long offset,
                             curandStateSobol64_t* state, int line = __builtin_LINE()) {
  simt::start_sobol(state, direction_vectors, 0ull, offset, line);
}
SIMT_INLINE void curand_init(const unsigned long long* direction_vectors, unsigned long long scramble_c,
                             unsigned long long offset, curandStateScrambledSobol64_t* state,
                             int line = __builtin_LINE()) {
  simt::start_sobol(state, direction_vectors, scramble_c, offset, line);
}
SIMT_INLINE void skipahead(unsigned count, curandStateSobol32_t* state) { simt::skip_sobol(state, count); }
SIMT_INLINE void skipahead(unsigned count, curandStateScrambledSobol32_t* state) { simt::skip_sobol(state, count); }
SIMT_INLINE void skipahead(unsigned long long count, curandStateSobol64_t* state) { simt::skip_sobol(state, count); }
SIMT_INLINE void skipahead(unsigned long long count, curandStateScrambledSobol64_t* state) {
  simt::skip_sobol(state, count);
}

// The 32-bit generators give an unsigned int, the others an unsigned long long.
template <class Word, bool is_scrambled>
SIMT_INLINE Word curand(simt::SobolState<Word, is_scrambled>* state) {
  const Word number = state->x, left = (Word)~state->i;  // the lowest bit of left is what the Gray code changes next
  if (left) state->x = number ^ state->direction_vectors[__builtin_ctzll(left)];
  ++state->i;
  return number;
}
