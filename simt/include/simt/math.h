// CUDA's math functions, those that <math.h> does not have or that differ there, with the fast approximations.
#pragma once

#include <math.h>
#include <stdlib.h>

#include <simt/runtime.h>

// ---- bits of a value as another type ----

#define SIMT_SAME_BITS(name, To, From)         \
  SIMT_INLINE To name(From x) {                \
    static_assert(sizeof(To) == sizeof(From)); \
    To y;                                      \
    __builtin_memcpy(&y, &x, sizeof y);        \
    return y;                                  \
  }
SIMT_SAME_BITS(__float_as_int, int, float)
SIMT_SAME_BITS(__float_as_uint, unsigned, float)
SIMT_SAME_BITS(__int_as_float, float, int)
SIMT_SAME_BITS(__uint_as_float, float, unsigned)
SIMT_SAME_BITS(__double_as_longlong, long long, double)
SIMT_SAME_BITS(__longlong_as_double, double, long long)
#undef SIMT_SAME_BITS

SIMT_INLINE int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
SIMT_INLINE int __double2loint(double x) { return (int)__double_as_longlong(x); }
SIMT_INLINE double __hiloint2double(int hi, int lo) {
  return __longlong_as_double((long long)((unsigned long long)(unsigned)hi << 32 | (unsigned)lo));
}

namespace simt {
inline constexpr double pi = 3.14159265358979323846, sqrt_half = 0.70710678118654752440;
}  // namespace simt

// ---- fminf and the like: NaN loses against a number ----

namespace simt {
// Two compares and a blend instead of a library call, so that a loop over elements vectorises.
template <class T>
SIMT_INLINE T least(T a, T b) {
  const T m = b < a ? b : a;
  return a != a ? b : m;
}
template <class T>
SIMT_INLINE T greatest(T a, T b) {
  const T m = b > a ? b : a;
  return a != a ? b : m;
}
}  // namespace simt

// The standard's own names, given a body to inline; no symbol is emitted, and their addresses stay libm's.
extern "C" {
#define SIMT_REPLACE extern __inline __attribute__((gnu_inline, always_inline))
#ifndef SIMT_COUNT  // where a call is counted as the one instruction that it is on a GPU
SIMT_REPLACE float fminf(float a, float b) noexcept { return simt::least(a, b); }
SIMT_REPLACE float fmaxf(float a, float b) noexcept { return simt::greatest(a, b); }
#else
// nvcc folds a power of two constants, but calls pow() for pow(x, 2) too.
float simt_powf(float, float) noexcept asm("powf");
double simt_pow(double, double) noexcept asm("pow");
SIMT_REPLACE float powf(float a, float b) noexcept {
  return __builtin_constant_p(a) && __builtin_constant_p(b) ? __builtin_powf(a, b) : simt_powf(a, b);
}
SIMT_REPLACE double pow(double a, double b) noexcept {
  return __builtin_constant_p(a) && __builtin_constant_p(b) ? __builtin_pow(a, b) : simt_pow(a, b);
}
#endif
SIMT_REPLACE double fmin(double a, double b) noexcept { return simt::least(a, b); }
SIMT_REPLACE double fmax(double a, double b) noexcept { return simt::greatest(a, b); }
#undef SIMT_REPLACE
}

// CUDA's own set of overloads: min(int, float) is ambiguous here because nvcc refuses it too. No template, so that
// these win over std::min and std::max under `using namespace std`.
#define SIMT_MIN_MAX(R, A, B)                                                 \
  SIMT_INLINE constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; } \
  SIMT_INLINE constexpr R max(A a, B b) { return (R)b > (R)a ? (R)b : (R)a; }
#define SIMT_MIN_MAX_MIXED(S, U) \
  SIMT_MIN_MAX(S, S, S)          \
  SIMT_MIN_MAX(U, U, U)          \
  SIMT_MIN_MAX(U, S, U)          \
  SIMT_MIN_MAX(U, U, S)
SIMT_MIN_MAX_MIXED(int, unsigned)
SIMT_MIN_MAX_MIXED(long, unsigned long)
SIMT_MIN_MAX_MIXED(long long, unsigned long long)
#undef SIMT_MIN_MAX_MIXED
#undef SIMT_MIN_MAX
SIMT_INLINE float min(float a, float b) { return fminf(a, b); }
SIMT_INLINE float max(float a, float b) { return fmaxf(a, b); }
SIMT_INLINE double min(double a, double b) { return fmin(a, b); }
SIMT_INLINE double max(double a, double b) { return fmax(a, b); }
SIMT_INLINE double min(float a, double b) { return fmin(a, b); }
SIMT_INLINE double max(float a, double b) { return fmax(a, b); }
SIMT_INLINE double min(double a, float b) { return fmin(a, b); }
SIMT_INLINE double max(double a, float b) { return fmax(a, b); }

SIMT_INLINE unsigned umin(unsigned a, unsigned b) { return min(a, b); }
SIMT_INLINE unsigned umax(unsigned a, unsigned b) { return max(a, b); }
SIMT_INLINE long long llmin(long long a, long long b) { return min(a, b); }
SIMT_INLINE long long llmax(long long a, long long b) { return max(a, b); }
SIMT_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
SIMT_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }

// ---- functions that newer C libraries declare as well: same linkage, so that both may stand together ----

extern "C" {
inline double rsqrt(double x) noexcept { return 1.0 / __builtin_sqrt(x); }
SIMT_COUNTED float rsqrtf(float x) noexcept { return 1.0f / __builtin_sqrtf(x); }

// sin(πx) and cos(πx), exact at multiples of 1/2: the argument is reduced before π comes in.
inline double sinpi(double x) noexcept {
  if (!(__builtin_fabs(x) < 0x1p52)) return isfinite(x) ? __builtin_copysign(0.0, x) : __builtin_nan("");
  const double turns = __builtin_rint(2 * x);
  const double angle = (x - turns / 2) * simt::pi;
  switch ((long long)turns & 3) {
    case 0: return turns == 0 || angle != 0 ? ::sin(angle) : __builtin_copysign(0.0, x);
    case 1: return ::cos(angle);
    case 2: return angle != 0 ? -::sin(angle) : __builtin_copysign(0.0, x);
    default: return -::cos(angle);
  }
}
inline double cospi(double x) noexcept {
  if (!isfinite(x)) return __builtin_nan("");
  if (__builtin_fabs(x) >= 0x1p53) return 1;
  const double turns = __builtin_rint(2 * x);
  const double angle = (x - turns / 2) * simt::pi;
  switch ((long long)turns & 3) {
    case 0: return ::cos(angle);
    case 1: return 0 - ::sin(angle);
    case 2: return -::cos(angle);
    default: return 0 + ::sin(angle);
  }
}
inline float sinpif(float x) noexcept { return (float)sinpi((double)x); }
inline float cospif(float x) noexcept { return (float)cospi((double)x); }
}

// ---- functions that only CUDA has, in double ----

inline double rcbrt(double x) { return 1 / ::cbrt(x); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }

inline double norm(int dimensions, const double* p) {
  double largest = 0, sum = 0;
  for (int i = 0; i < dimensions; ++i) largest = fmax(largest, __builtin_fabs(p[i]));
  for (int i = 0; i < dimensions; ++i)
    if (isinf(p[i])) return __builtin_inf();
  if (largest == 0) {
    for (int i = 0; i < dimensions; ++i) sum += p[i];   // zero, or NaN
    return __builtin_fabs(sum);
  }
  for (int i = 0; i < dimensions; ++i) sum += (p[i] / largest) * (p[i] / largest);
  return largest * __builtin_sqrt(sum);
}
inline double norm3d(double a, double b, double c) {
  const double p[] = {a, b, c};
  return norm(3, p);
}
inline double norm4d(double a, double b, double c, double d) {
  const double p[] = {a, b, c, d};
  return norm(4, p);
}
inline double rnorm(int dimensions, const double* p) { return 1 / norm(dimensions, p); }
inline double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
inline double rhypot(double x, double y) { return 1 / ::hypot(x, y); }

namespace simt {
// Solves erfc(y) = x for 0 < x <= 1: a starting value, then Halley's steps.
inline double inverse_erfc(double x) {
  // The starting value is Winitzki's near 1 and the asymptote of erfc's logarithm far from it.
  const double log_x = ::log(x);
  double y;
  if (x > 0.1) {
    const double l = ::log1p(-(1 - x) * (1 - x)), h = 2 / (simt::pi * 0.147) + l / 2;
    y = __builtin_sqrt(__builtin_sqrt(h * h - l / 0.147) - h);
  } else {
    y = __builtin_sqrt(-log_x);
    for (int i = 0; i < 3; ++i) y = __builtin_sqrt(-log_x - ::log(y * 1.7724538509055160273));
  }
  for (int i = 0; i < 3; ++i) {
    const double slope = -1.1283791670955125739 * ::exp(-y * y);
    const double step = (::erfc(y) - x) / slope;
    if (!isfinite(step)) break;
    y -= step / (1 + y * step);
  }
  return y;
}

// The same for erf(y) = x, |x| <= 1/2, where 1 - x would lose digits.
inline double inverse_erf_near_zero(double x) {
  double y = x * 0.88622692545275801365;
  for (int i = 0; i < 5; ++i) {
    const double step = (::erf(y) - x) / (1.1283791670955125739 * ::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return x == 0 ? x : y;
}
}  // namespace simt

inline double erfcinv(double x) {
  if (!(x >= 0 && x <= 2)) return __builtin_nan("");
  if (x == 0 || x == 2) return x == 0 ? __builtin_inf() : -__builtin_inf();
  if (x >= 0.5 && x <= 1.5) return simt::inverse_erf_near_zero(1 - x);
  return x < 1 ? simt::inverse_erfc(x) : -simt::inverse_erfc(2 - x);
}
inline double erfinv(double x) {
  const double a = __builtin_fabs(x);
  if (!(a <= 1)) return __builtin_nan("");
  if (a <= 0.5) return simt::inverse_erf_near_zero(x);
  return __builtin_copysign(a == 1 ? __builtin_inf() : simt::inverse_erfc(1 - a), x);
}
// exp(x²)·erfc(x); from 25 on erfc's own asymptotic series, whose terms then fall below 1e-16 at the seventh.
inline double erfcx(double x) {
  if (x < 25) {
    const double square = x * x, rest = __builtin_fma(x, x, -square);
    return isinf(x) ? __builtin_inf() : ::exp(square) * ::erfc(x) * (1 + rest);
  }
  const double u = 1 / (2 * x * x);
  return 0.56418958354775628695 / x *
         (1 - u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u * (1 - 9 * u * (1 - 11 * u * (1 - 13 * u)))))));
}
// erfc(-x/√2)/2; far from 0 the rounding of the argument would show, so its error is put right to first order.
inline double normcdf(double x) {
  const double scaled = -x * simt::sqrt_half;
  const double error =
      __builtin_fma(-x, simt::sqrt_half, -scaled) + x * 4.8336466567264565e-17;   // the constant's own error
  const double tail = 0.5 * ::erfc(scaled);
  return tail > 0 && tail < 1 ? tail - 0.56418958354775628695 * ::exp(-scaled * scaled) * error : tail;
}
inline double normcdfinv(double x) { return -1.4142135623730950488 * erfcinv(2 * x); }

// Modified Bessel functions by their power series, whose terms are all of one sign.
inline double cyl_bessel_i0(double x) {
  const double quarter = x * x / 4;
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-17 && sum < __builtin_inf(); ++k) sum += term *= quarter / k / k;
  return sum;
}
inline double cyl_bessel_i1(double x) {
  const double quarter = x * x / 4;
  double term = x / 2, sum = x / 2;
  for (int k = 1; __builtin_fabs(term) > __builtin_fabs(sum) * 1e-17 && __builtin_fabs(sum) < __builtin_inf(); ++k)
    sum += term *= quarter / k / (k + 1);
  return sum;
}

// ---- the same in float ----

inline float rcbrtf(float x) { return (float)rcbrt((double)x); }
inline void sincospif(float x, float* s, float* c) { *s = sinpif(x), *c = cospif(x); }
SIMT_INLINE float fdividef(float x, float y) { return x / y; }
inline float normf(int dimensions, const float* p) {
  double sum = 0;   // squares of floats neither overflow nor vanish in double
  for (int i = 0; i < dimensions; ++i) sum += (double)p[i] * p[i];
  for (int i = 0; i < dimensions; ++i)
    if (isinf(p[i])) return __builtin_inff();
  return (float)__builtin_sqrt(sum);
}
inline float norm3df(float a, float b, float c) {
  const float p[] = {a, b, c};
  return normf(3, p);
}
inline float norm4df(float a, float b, float c, float d) {
  const float p[] = {a, b, c, d};
  return normf(4, p);
}
inline float rnormf(int dimensions, const float* p) { return 1 / normf(dimensions, p); }
inline float rnorm3df(float a, float b, float c) { return 1 / norm3df(a, b, c); }
inline float rnorm4df(float a, float b, float c, float d) { return 1 / norm4df(a, b, c, d); }
inline float rhypotf(float x, float y) { return (float)rhypot((double)x, (double)y); }
inline float erfinvf(float x) { return (float)erfinv((double)x); }
inline float erfcinvf(float x) { return (float)erfcinv((double)x); }
inline float erfcxf(float x) { return (float)erfcx((double)x); }
inline float normcdff(float x) { return (float)normcdf((double)x); }
inline float normcdfinvf(float x) { return (float)normcdfinv((double)x); }
inline float cyl_bessel_i0f(float x) { return (float)cyl_bessel_i0((double)x); }
inline float cyl_bessel_i1f(float x) { return (float)cyl_bessel_i1((double)x); }

// In C++ CUDA also takes floats under the plain names.
SIMT_INLINE float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrt(float x) { return rcbrtf(x); }
inline float sinpi(float x) { return sinpif(x); }
inline float cospi(float x) { return cospif(x); }
inline void sincospi(float x, float* s, float* c) { sincospif(x, s, c); }
inline void sincos(float x, float* s, float* c) { ::sincosf(x, s, c); }
inline float exp10(float x) { return ::exp10f(x); }
inline float erfinv(float x) { return erfinvf(x); }
inline float erfcinv(float x) { return erfcinvf(x); }
inline float erfcx(float x) { return erfcxf(x); }
inline float normcdf(float x) { return normcdff(x); }
inline float normcdfinv(float x) { return normcdfinvf(x); }
inline float cyl_bessel_i0(float x) { return cyl_bessel_i0f(x); }
inline float cyl_bessel_i1(float x) { return cyl_bessel_i1f(x); }

// ---- fast approximations: where they differ from the exact function by more than rounding, so do these ----

SIMT_COUNTED float __expf(float x) { return ::expf(x); }
SIMT_COUNTED float __exp10f(float x) { return ::exp10f(x); }
SIMT_COUNTED float __logf(float x) { return ::logf(x); }
SIMT_COUNTED float __log2f(float x) { return ::log2f(x); }
SIMT_COUNTED float __log10f(float x) { return ::log10f(x); }
SIMT_COUNTED float __powf(float x, float y) { return ::exp2f(y * ::log2f(x)); }   // NaN for x < 0, whatever y
SIMT_COUNTED float __sinf(float x) { return ::sinf(x); }
SIMT_COUNTED float __cosf(float x) { return ::cosf(x); }
SIMT_COUNTED float __tanf(float x) { return ::sinf(x) / ::cosf(x); }
SIMT_COUNTED float __tanhf(float x) { return ::tanhf(x); }
SIMT_INLINE void __sincosf(float x, float* s, float* c) { ::sincosf(x, s, c); }
SIMT_COUNTED float __fdividef(float x, float y) {
  return __builtin_fabsf(y) > 0x1p126f && __builtin_fabsf(y) < __builtin_inff() ? x * 0.0f
                                                                                : x / y;   // zero, as documented
}
SIMT_INLINE float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }   // NaN becomes 0
