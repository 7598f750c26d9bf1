// What cuRAND makes of the numbers of its Sobol generators: always one result of one number, so that results are
// quasi-random, too. Uniform ones are the library's to the bit. Others use the CPU's functions, whose last bits differ.
#pragma once

#include <simt/curand_quasi_states.h>
#include <simt/curand_values.h>

namespace simt {
// The number x as the interval's middle in 1 / 2^32 or 1 / 2^53.
SIMT_INLINE double to_middle(unsigned x) { return x * 0x1p-32 + 0x1p-33; }
SIMT_INLINE double to_middle(unsigned long long x) { return (double)(x >> 11) * 0x1p-53 + 0x1p-54; }
SIMT_INLINE unsigned to_32_bits(unsigned x) { return x; }
SIMT_INLINE unsigned to_32_bits(unsigned long long x) { return (unsigned)(x >> 32); }
SIMT_INLINE float invert_normal(unsigned x) {  // the upper half mirrors the lower, so that floats suffice
  const bool upper = x > 0x80000000u;
  const float normal = (float)normcdfinv((double)to_uniform(upper ? ~x : x));
  return upper ? -normal : normal;
}

// The least k of which k or fewer Poisson events have at least the probability p. Above large_lambda, by the first three
// terms of Cornish and Fisher's expansion.
SIMT_INLINE unsigned invert_poisson(double p, double lambda) {
  if (lambda > large_lambda) {
    const double z = normcdfinv(p), k = lambda + sqrt(lambda) * z + (z * z - 1) / 6 + 0.5;
    return k > 0 ? (unsigned)k : 0;
  }
  const unsigned most = (unsigned)(lambda + 12 * sqrt(lambda) + 30);
  double log_term = -lambda, sum = exp(log_term);
  unsigned k = 0;
  for (; sum < p && k < most; sum += exp(log_term)) log_term += log(lambda / ++k);
  return k;
}
}  // namespace simt

template <simt::SingleState S>
SIMT_INLINE float curand_uniform(S* state) {
  return simt::to_uniform(simt::to_32_bits(curand(state)));
}
template <simt::SingleState S>
SIMT_INLINE double curand_uniform_double(S* state) {
  const auto x = curand(state);
  if constexpr (sizeof x == 4)
    return x * 0x1p-32 + 0x1p-32;
  else
    return simt::to_middle(x);
}
template <simt::SingleState S>
SIMT_INLINE float curand_normal(S* state) {
  return simt::invert_normal(simt::to_32_bits(curand(state)));
}
template <simt::SingleState S>
SIMT_INLINE double curand_normal_double(S* state) {
  return normcdfinv(simt::to_middle(curand(state)));
}
template <simt::SingleState S>
SIMT_INLINE float curand_log_normal(S* state, float mean, float stddev) {
  return simt::to_log_normal(curand_normal(state), mean, stddev);
}
template <simt::SingleState S>
SIMT_INLINE double curand_log_normal_double(S* state, double mean, double stddev) {
  return simt::to_log_normal(curand_normal_double(state), mean, stddev);
}
template <simt::SingleState S>
SIMT_INLINE unsigned curand_poisson(S* state, double lambda) {
  return simt::invert_poisson(simt::to_middle(simt::to_32_bits(curand(state))), lambda);
}
