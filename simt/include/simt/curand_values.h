// What cuRAND's device functions make of 32-bit numbers: uniform, normal, log-normal and Poisson numbers. Uniform ones
// are the library's to the bit. Others use its formulas with the CPU's logarithm, sine and cosine, whose last bits differ
// from a GPU's.
#pragma once

#include <simt/curand_states.h>
#include <simt/math.h>

namespace simt {
template <class S> inline constexpr bool is_mrg = false;
template <> inline constexpr bool is_mrg<curandStateMRG32k3a> = true;
template <class S> inline constexpr bool is_philox = false;
template <> inline constexpr bool is_philox<curandStatePhilox4_32_10> = true;
template <class S> inline constexpr bool is_xorwow = false;
template <> inline constexpr bool is_xorwow<curandStateXORWOW> = true;
template <class S>
concept RandomState = is_mrg<S> || is_philox<S> || is_xorwow<S>;

// ---- uniform numbers in (0, 1] ----

inline constexpr double mrg_unit = 2.3283065498378288e-10;  // a little less than 1 / (modulus + 1)
inline constexpr float two_pi = 6.2831855f;

SIMT_INLINE float to_uniform(unsigned x) { return (float)x * 0x1p-32f + 0x1p-33f; }
// 53 bits of two numbers.
SIMT_INLINE double to_uniform_double(unsigned x, unsigned y) {
  return (double)(x ^ (unsigned long long)y << 21) * 0x1p-53 + 0x1p-54;
}
}  // namespace simt

template <simt::RandomState S>
SIMT_INLINE float curand_uniform(S* state) {
  if constexpr (simt::is_mrg<S>)
    return (float)(simt::next_of(state) * simt::mrg_unit);
  else
    return simt::to_uniform(curand(state));
}
template <simt::RandomState S>
SIMT_INLINE double curand_uniform_double(S* state) {
  if constexpr (simt::is_mrg<S>)
    return simt::next_of(state) * simt::mrg_unit;
  else if constexpr (simt::is_philox<S>)
    return curand(state) * 0x1p-32 + 0x1p-32;
  else {
    const unsigned x = curand(state), y = curand(state);
    return simt::to_uniform_double(x, y);
  }
}
SIMT_INLINE float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return {simt::to_uniform(x.x), simt::to_uniform(x.y), simt::to_uniform(x.z), simt::to_uniform(x.w)};
}
SIMT_INLINE double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return {simt::to_uniform_double(x.x, x.y), simt::to_uniform_double(x.z, x.w)};
}
SIMT_INLINE double4 curand_uniform4_double(curandStatePhilox4_32_10_t* state) {
  const double2 a = curand_uniform2_double(state), b = curand_uniform2_double(state);
  return {a.x, a.y, b.x, b.y};
}

// ---- normal numbers: Box and Muller's pairs, the sine's first ----

namespace simt {
// u: in (0, 1]; angle: in radians, or as a multiple of pi.
SIMT_INLINE float2 to_normal(float u, float angle) {
  const float radius = sqrtf(-2.0f * logf(u));
  return {__sinf(angle) * radius, __cosf(angle) * radius};
}
SIMT_INLINE double2 to_normal(double u, double halves) {
  const double radius = sqrt(-2.0 * log(u));
  return {sinpi(halves) * radius, cospi(halves) * radius};
}
SIMT_INLINE float2 to_normal(unsigned x, unsigned y) {
  const float turn = 0x1p-32f * two_pi;
  return to_normal(to_uniform(x), fmaf((float)y, turn, turn / 2));
}
SIMT_INLINE double2 to_normal(unsigned x0, unsigned x1, unsigned y0, unsigned y1) {
  return to_normal(to_uniform_double(x0, x1), to_uniform_double(y0, y1) * 2);
}
// exp(mean + deviation * x)
SIMT_INLINE float to_log_normal(float x, float mean, float deviation) { return expf(fmaf(deviation, x, mean)); }
SIMT_INLINE double to_log_normal(double x, double mean, double deviation) { return exp(fma(deviation, x, mean)); }
template <class Pair, class T>
SIMT_INLINE Pair to_log_normals(Pair p, T mean, T deviation) {
  return {to_log_normal(p.x, mean, deviation), to_log_normal(p.y, mean, deviation)};
}
}  // namespace simt

template <simt::RandomState S>
SIMT_INLINE float2 curand_normal2(S* state) {
  if constexpr (simt::is_mrg<S>) {
    const float u = curand_uniform(state), v = curand_uniform(state);
    return simt::to_normal(u, v * simt::two_pi);
  } else {
    const unsigned x = curand(state), y = curand(state);
    return simt::to_normal(x, y);
  }
}
template <simt::RandomState S>
SIMT_INLINE double2 curand_normal2_double(S* state) {
  if constexpr (simt::is_mrg<S>) {
    const double u = curand_uniform_double(state), v = curand_uniform_double(state);
    return simt::to_normal(u, v * 2);
  } else if constexpr (simt::is_philox<S>) {
    const uint4 x = curand4(state);
    return simt::to_normal(x.x, x.y, x.z, x.w);
  } else {
    const unsigned x0 = curand(state), x1 = curand(state), y0 = curand(state), y1 = curand(state);
    return simt::to_normal(x0, x1, y0, y1);
  }
}
SIMT_INLINE float4 curand_normal4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  const float2 a = simt::to_normal(x.x, x.y), b = simt::to_normal(x.z, x.w);
  return {a.x, a.y, b.x, b.y};
}
SIMT_INLINE double4 curand_normal4_double(curandStatePhilox4_32_10_t* state) {
  const double2 a = curand_normal2_double(state), b = curand_normal2_double(state);
  return {a.x, a.y, b.x, b.y};
}

template <simt::RandomState S>
SIMT_INLINE float2 curand_log_normal2(S* state, float mean, float stddev) {
  return simt::to_log_normals(curand_normal2(state), mean, stddev);
}
template <simt::RandomState S>
SIMT_INLINE double2 curand_log_normal2_double(S* state, double mean, double stddev) {
  return simt::to_log_normals(curand_normal2_double(state), mean, stddev);
}
SIMT_INLINE float4 curand_log_normal4(curandStatePhilox4_32_10_t* state, float mean, float stddev) {
  const float2 a = curand_log_normal2(state, mean, stddev), b = curand_log_normal2(state, mean, stddev);
  return {a.x, a.y, b.x, b.y};
}
SIMT_INLINE double4 curand_log_normal4_double(curandStatePhilox4_32_10_t* state, double mean, double stddev) {
  const double2 a = curand_log_normal2_double(state, mean, stddev);
  const double2 b = curand_log_normal2_double(state, mean, stddev);
  return {a.x, a.y, b.x, b.y};
}

// The functions that return one number of a pair and keep the other for their next call.
#define SIMT_ONE_OF_PAIR(kind, T, flag, extra, pair) \
  if (state->flag != simt::kind) {                   \
    const auto both = pair;                          \
    state->extra = both.y;                           \
    state->flag = simt::kind;                        \
    return both.x;                                   \
  }                                                  \
  state->flag = simt::kept_nothing;                  \
  return state->extra;
template <simt::RandomState S>
SIMT_INLINE float curand_normal(S* state) {
  SIMT_ONE_OF_PAIR(kept_normal, float, boxmuller_flag, boxmuller_extra, curand_normal2(state))
}
template <simt::RandomState S>
SIMT_INLINE double curand_normal_double(S* state) {
  SIMT_ONE_OF_PAIR(kept_normal, double, boxmuller_flag_double, boxmuller_extra_double, curand_normal2_double(state))
}
template <simt::RandomState S>
SIMT_INLINE float curand_log_normal(S* state, float mean, float stddev) {
  SIMT_ONE_OF_PAIR(kept_log_normal, float, boxmuller_flag, boxmuller_extra, curand_log_normal2(state, mean, stddev))
}
template <simt::RandomState S>
SIMT_INLINE double curand_log_normal_double(S* state, double mean, double stddev) {
  SIMT_ONE_OF_PAIR(kept_log_normal, double, boxmuller_flag_double, boxmuller_extra_double,
                   curand_log_normal2_double(state, mean, stddev))
}
#undef SIMT_ONE_OF_PAIR

// ---- Poisson numbers ----

namespace simt {
inline constexpr double small_lambda = 64, large_lambda = 4000;  // the library changes its method there

// Knuth's: as many uniform numbers as keep their product above exp(-lambda).
template <class S>
SIMT_INLINE unsigned count_factors(S* state, float lambda) {
  unsigned count = 0;
  for (float product = expf(lambda) * curand_uniform(state); product > 1; product *= curand_uniform(state)) ++count;
  return count;
}
// Hoermann's transformed rejection with squeeze (PTRS, 1993). The library has another method, and other numbers, here.
template <class S>
SIMT_INLINE unsigned transform_and_reject(S* state, double lambda) {
  const double b = 0.931 + 2.53 * sqrt(lambda), a = -0.059 + 0.02483 * b, log_lambda = log(lambda);
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), squeeze = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = curand_uniform_double(state) - 0.5, v = curand_uniform_double(state), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + lambda + 0.43);
    if (us >= 0.07 && v <= squeeze) return (unsigned)k;
    if (k < 0 || us <= 0 || (us < 0.013 && v > us)) continue;
    if (log(v * inverse_alpha / (a / (us * us) + b)) <= k * log_lambda - lambda - lgamma(k + 1)) return (unsigned)k;
  }
}
SIMT_INLINE unsigned round_normal(double x, double lambda) { return (unsigned)(sqrt(lambda) * x + lambda + 0.5); }
}  // namespace simt

template <simt::RandomState S>
SIMT_INLINE unsigned curand_poisson(S* state, double lambda) {
  if (lambda < simt::small_lambda) return simt::count_factors(state, (float)lambda);
  if (lambda > simt::large_lambda) return simt::round_normal(curand_normal_double(state), lambda);
  return simt::transform_and_reject(state, lambda);
}
SIMT_INLINE uint4 curand_poisson4(curandStatePhilox4_32_10_t* state, double lambda) {
  if (lambda > simt::large_lambda) {
    const double4 x = curand_normal4_double(state);
    return {simt::round_normal(x.x, lambda), simt::round_normal(x.y, lambda), simt::round_normal(x.z, lambda),
            simt::round_normal(x.w, lambda)};
  }
  const unsigned x = curand_poisson(state, lambda), y = curand_poisson(state, lambda);
  const unsigned z = curand_poisson(state, lambda), w = curand_poisson(state, lambda);
  return {x, y, z, w};
}
