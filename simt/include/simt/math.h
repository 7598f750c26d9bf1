// CUDA's math functions, integer intrinsics, conversions and cache hints: everything that <math.h> does not have.
#pragma once

#include <fenv.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include <simt/probe.h>
#include <simt/runtime.h>

// ---- bits of a value as another type ----

#define SIMT_SAME_BITS(name, To, From)    \
  SIMT_INLINE To name(From x) {           \
    static_assert(sizeof(To) == sizeof(From)); \
    To y;                                 \
    __builtin_memcpy(&y, &x, sizeof y);   \
    return y;                             \
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
SIMT_INLINE T least(T a, T b) { const T m = b < a ? b : a; return a != a ? b : m; }
template <class T>
SIMT_INLINE T greatest(T a, T b) { const T m = b > a ? b : a; return a != a ? b : m; }
}  // namespace simt

// The standard's own names, given a body to inline; no symbol is emitted, and their addresses stay libm's.
extern "C" {
#define SIMT_REPLACE extern __inline __attribute__((gnu_inline, always_inline))
SIMT_REPLACE float fminf(float a, float b) noexcept { return simt::least(a, b); }
SIMT_REPLACE float fmaxf(float a, float b) noexcept { return simt::greatest(a, b); }
SIMT_REPLACE double fmin(double a, double b) noexcept { return simt::least(a, b); }
SIMT_REPLACE double fmax(double a, double b) noexcept { return simt::greatest(a, b); }
#undef SIMT_REPLACE
}

// CUDA's own set of overloads: min(int, float) is ambiguous here because nvcc refuses it too. No template, so that
// these win over std::min and std::max under `using namespace std`.
#define SIMT_MIN_MAX(R, A, B)                                                              \
  SIMT_INLINE constexpr R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; }                \
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
inline double norm3d(double a, double b, double c) { const double p[] = {a, b, c}; return norm(3, p); }
inline double norm4d(double a, double b, double c, double d) { const double p[] = {a, b, c, d}; return norm(4, p); }
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
  return 0.56418958354775628695 / x * (1 - u * (1 - 3 * u * (1 - 5 * u * (1 - 7 * u * (1 - 9 * u * (1 - 11 * u * (1 - 13 * u)))))));
}
// erfc(-x/√2)/2; far from 0 the rounding of the argument would show, so its error is put right to first order.
inline double normcdf(double x) {
  const double scaled = -x * simt::sqrt_half;
  const double error = __builtin_fma(-x, simt::sqrt_half, -scaled) + x * 4.8336466567264565e-17;   // the constant's own error
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
inline float norm3df(float a, float b, float c) { const float p[] = {a, b, c}; return normf(3, p); }
inline float norm4df(float a, float b, float c, float d) { const float p[] = {a, b, c, d}; return normf(4, p); }
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
  return __builtin_fabsf(y) > 0x1p126f && __builtin_fabsf(y) < __builtin_inff() ? x * 0.0f : x / y;   // zero, as documented
}
SIMT_INLINE float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }   // NaN becomes 0

// ---- arithmetic in a named rounding direction ----

namespace simt {
// Keeps a product from being fused with a following sum.
SIMT_INLINE float settled(float x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
  return x;
}
SIMT_INLINE double settled(double x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#endif
  return x;
}
}  // namespace simt

SIMT_INLINE float __fadd_rn(float x, float y) { return simt::settled(x + y); }
SIMT_INLINE float __fsub_rn(float x, float y) { return simt::settled(x - y); }
SIMT_INLINE float __fmul_rn(float x, float y) { return simt::settled(x * y); }
SIMT_INLINE float __fdiv_rn(float x, float y) { return x / y; }
SIMT_INLINE float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
SIMT_INLINE float __frcp_rn(float x) { return 1 / x; }
SIMT_INLINE float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
SIMT_INLINE float __frsqrt_rn(float x) { return (float)(1 / __builtin_sqrt((double)x)); }
SIMT_INLINE double __dadd_rn(double x, double y) { return simt::settled(x + y); }
SIMT_INLINE double __dsub_rn(double x, double y) { return simt::settled(x - y); }
SIMT_INLINE double __dmul_rn(double x, double y) { return simt::settled(x * y); }
SIMT_INLINE double __ddiv_rn(double x, double y) { return x / y; }
SIMT_INLINE double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
SIMT_INLINE double __drcp_rn(double x) { return 1 / x; }
SIMT_INLINE double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
SIMT_INLINE float __double2float_rn(double x) { return (float)x; }
SIMT_INLINE float __int2float_rn(int x) { return (float)x; }
SIMT_INLINE float __uint2float_rn(unsigned x) { return (float)x; }
SIMT_INLINE float __ll2float_rn(long long x) { return (float)x; }
SIMT_INLINE float __ull2float_rn(unsigned long long x) { return (float)x; }
SIMT_INLINE double __int2double_rn(int x) { return (double)x; }
SIMT_INLINE double __uint2double_rn(unsigned x) { return (double)x; }
SIMT_INLINE double __ll2double_rn(long long x) { return (double)x; }
SIMT_INLINE double __ull2double_rn(unsigned long long x) { return (double)x; }

// The processor's own rounding mode does the rest. The operands are volatile so that the operation stays between
// the two changes of mode.
#define SIMT_DIRECTED(mode, R, expression) \
  {                                        \
    const int before = ::fegetround();     \
    ::fesetround(mode);                    \
    volatile R result = expression;        \
    ::fesetround(before);                  \
    return result;                         \
  }
#define SIMT_DIRECTED_1(mode, R, name, T, expression) \
  inline R name(T x_) { volatile T x = x_; SIMT_DIRECTED(mode, R, expression) }
#define SIMT_DIRECTED_2(mode, R, name, T, expression) \
  inline R name(T x_, T y_) { volatile T x = x_, y = y_; SIMT_DIRECTED(mode, R, expression) }
#define SIMT_DIRECTED_3(mode, R, name, T, expression) \
  inline R name(T x_, T y_, T z_) { volatile T x = x_, y = y_, z = z_; SIMT_DIRECTED(mode, R, expression) }
#define SIMT_DIRECTED_ALL(rounding, mode)                                   \
  SIMT_DIRECTED_2(mode, float, __fadd_##rounding, float, x + y)             \
  SIMT_DIRECTED_2(mode, float, __fsub_##rounding, float, x - y)             \
  SIMT_DIRECTED_2(mode, float, __fmul_##rounding, float, x* y)              \
  SIMT_DIRECTED_2(mode, float, __fdiv_##rounding, float, x / y)             \
  SIMT_DIRECTED_3(mode, float, __fmaf_##rounding, float, ::fmaf(x, y, z))   \
  SIMT_DIRECTED_1(mode, float, __frcp_##rounding, float, 1 / x)             \
  SIMT_DIRECTED_1(mode, float, __fsqrt_##rounding, float, __builtin_sqrtf(x)) \
  SIMT_DIRECTED_2(mode, double, __dadd_##rounding, double, x + y)           \
  SIMT_DIRECTED_2(mode, double, __dsub_##rounding, double, x - y)           \
  SIMT_DIRECTED_2(mode, double, __dmul_##rounding, double, x* y)            \
  SIMT_DIRECTED_2(mode, double, __ddiv_##rounding, double, x / y)           \
  SIMT_DIRECTED_3(mode, double, __fma_##rounding, double, ::fma(x, y, z))   \
  SIMT_DIRECTED_1(mode, double, __drcp_##rounding, double, 1 / x)           \
  SIMT_DIRECTED_1(mode, double, __dsqrt_##rounding, double, __builtin_sqrt(x)) \
  SIMT_DIRECTED_1(mode, float, __double2float_##rounding, double, (float)x) \
  SIMT_DIRECTED_1(mode, float, __int2float_##rounding, int, (float)x)       \
  SIMT_DIRECTED_1(mode, float, __uint2float_##rounding, unsigned, (float)x) \
  SIMT_DIRECTED_1(mode, float, __ll2float_##rounding, long long, (float)x)  \
  SIMT_DIRECTED_1(mode, float, __ull2float_##rounding, unsigned long long, (float)x) \
  SIMT_DIRECTED_1(mode, double, __ll2double_##rounding, long long, (double)x) \
  SIMT_DIRECTED_1(mode, double, __ull2double_##rounding, unsigned long long, (double)x)
SIMT_DIRECTED_ALL(rz, FE_TOWARDZERO)
SIMT_DIRECTED_ALL(ru, FE_UPWARD)
SIMT_DIRECTED_ALL(rd, FE_DOWNWARD)
#undef SIMT_DIRECTED_ALL
#undef SIMT_DIRECTED_3
#undef SIMT_DIRECTED_2
#undef SIMT_DIRECTED_1
#undef SIMT_DIRECTED

// ---- floating point to integer: out of range gives the nearest end; NaN gives 0, or the top bit for 64-bit types ----

#define SIMT_TO_INTEGER(name, F, I, low, high, nan, rounded) \
  SIMT_INLINE I name(F x) {                                  \
    x = rounded;                                             \
    return x != x ? nan : x <= (F)low ? low : x >= (F)high ? high : (I)x; \
  }
#define SIMT_TO_INTEGERS(rounding, round)                                                                     \
  SIMT_TO_INTEGER(__float2int_##rounding, float, int, INT_MIN, INT_MAX, 0, round##f(x))                       \
  SIMT_TO_INTEGER(__float2uint_##rounding, float, unsigned, 0u, UINT_MAX, 0u, round##f(x))                    \
  SIMT_TO_INTEGER(__float2ll_##rounding, float, long long, LLONG_MIN, LLONG_MAX, LLONG_MIN, round##f(x))      \
  SIMT_TO_INTEGER(__float2ull_##rounding, float, unsigned long long, 0ull, ULLONG_MAX, 1ull << 63, round##f(x)) \
  SIMT_TO_INTEGER(__double2int_##rounding, double, int, INT_MIN, INT_MAX, INT_MIN, round(x))                  \
  SIMT_TO_INTEGER(__double2uint_##rounding, double, unsigned, 0u, UINT_MAX, 1u << 31, round(x))               \
  SIMT_TO_INTEGER(__double2ll_##rounding, double, long long, LLONG_MIN, LLONG_MAX, LLONG_MIN, round(x))       \
  SIMT_TO_INTEGER(__double2ull_##rounding, double, unsigned long long, 0ull, ULLONG_MAX, 1ull << 63, round(x))
SIMT_TO_INTEGERS(rn, __builtin_rint)
SIMT_TO_INTEGERS(rz, __builtin_trunc)
SIMT_TO_INTEGERS(ru, __builtin_ceil)
SIMT_TO_INTEGERS(rd, __builtin_floor)
#undef SIMT_TO_INTEGERS
#undef SIMT_TO_INTEGER

// ---- integers ----

SIMT_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
SIMT_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SIMT_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SIMT_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
SIMT_INLINE int __ffs(int x) { return __builtin_ffs(x); }
SIMT_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0F0F0F0Fu) | (x & 0x0F0F0F0Fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
// Position of the offset-th set bit of `mask`, counted from bit `base` (upwards if positive); -1 if there is none.
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
  const int step = offset > 0 ? 1 : -1;
  for (int at = (int)base; at >= 0 && at < 32; at += step)
    if (mask >> at & 1 && (offset -= step) == 0) return (unsigned)at;
  return ~0u;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
  return result;
}
SIMT_INLINE int __mul24(int x, int y) { return (int)((unsigned)((int)((unsigned)x << 8) >> 8) * (unsigned)((int)((unsigned)y << 8) >> 8)); }
SIMT_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xFFFFFFu) * (y & 0xFFFFFFu); }
SIMT_INLINE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
SIMT_INLINE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
SIMT_INLINE long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
SIMT_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
SIMT_INLINE unsigned __sad(int x, int y, unsigned z) { return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x); }
SIMT_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }
SIMT_INLINE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
SIMT_INLINE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
SIMT_INLINE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
SIMT_INLINE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
// The 64-bit number hi:lo shifted; the high word of a left shift, the low word of a right one.
SIMT_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return (unsigned)((((unsigned long long)hi << 32 | lo) << (shift & 31)) >> 32);
}
SIMT_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) { return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift); }
SIMT_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift & 31));
}
SIMT_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) { return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift); }

inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += (signed char)(a >> i) * (signed char)(b >> i);
  return c;
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xFF) * (b >> i & 0xFF);
  return c;
}
inline int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return c + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w); }
// Two 16-bit numbers of `a` times the low or the high two bytes of `b`.
inline int __dp2a_lo(int a, int b, int c) { return c + (short)a * (signed char)b + (short)(a >> 16) * (signed char)(b >> 8); }
inline int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return c + (a & 0xFFFF) * (b & 0xFF) + (a >> 16) * (b >> 8 & 0xFF); }
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }

// ---- two 16-bit or four 8-bit numbers in a word ----

namespace simt {
SIMT_INLINE int held(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
}  // namespace simt

// `signed_x` and `unsigned_x` are the part at `bit` read either way; `all` is the unsigned part's largest value.
#define SIMT_PARTS(name, bits, S, U, combine)                                              \
  inline unsigned name(unsigned a, unsigned b) {                                           \
    unsigned word = 0;                                                                     \
    constexpr int all = (1 << bits) - 1, top = all >> 1;                                   \
    (void)all, (void)top;                                                                  \
    for (int bit = 0; bit < 32; bit += bits) {                                             \
      const int sa = (S)(a >> bit), sb = (S)(b >> bit), ua = (U)(a >> bit), ub = (U)(b >> bit); \
      (void)sa, (void)sb, (void)ua, (void)ub;                                              \
      word |= ((unsigned)(combine) & (unsigned)all) << bit;                                \
    }                                                                                      \
    return word;                                                                           \
  }
#define SIMT_PARTS_1(name, bits, S, U, combine) \
  SIMT_PARTS(simt_##name, bits, S, U, combine)  \
  inline unsigned name(unsigned a) { return simt_##name(a, 0); }
#define SIMT_COMPARE_PARTS(n, bits, S, U, name, test)           \
  SIMT_PARTS(__vcmp##name##n, bits, S, U, (test) ? all : 0)     \
  SIMT_PARTS(__vset##name##n, bits, S, U, (test) ? 1 : 0)
#define SIMT_WORD(n, bits, S, U)                                                          \
  SIMT_PARTS(__vadd##n, bits, S, U, ua + ub)                                              \
  SIMT_PARTS(__vaddss##n, bits, S, U, simt::held(sa + sb, -top - 1, top))                 \
  SIMT_PARTS(__vaddus##n, bits, S, U, simt::held(ua + ub, 0, all))                        \
  SIMT_PARTS(__vsub##n, bits, S, U, ua - ub)                                              \
  SIMT_PARTS(__vsubss##n, bits, S, U, simt::held(sa - sb, -top - 1, top))                 \
  SIMT_PARTS(__vsubus##n, bits, S, U, simt::held(ua - ub, 0, all))                        \
  SIMT_PARTS(__vmaxs##n, bits, S, U, sa > sb ? sa : sb)                                   \
  SIMT_PARTS(__vmaxu##n, bits, S, U, ua > ub ? ua : ub)                                   \
  SIMT_PARTS(__vmins##n, bits, S, U, sa < sb ? sa : sb)                                   \
  SIMT_PARTS(__vminu##n, bits, S, U, ua < ub ? ua : ub)                                   \
  SIMT_PARTS(__vabsdiffs##n, bits, S, U, sa > sb ? sa - sb : sb - sa)                     \
  SIMT_PARTS(__vabsdiffu##n, bits, S, U, ua > ub ? ua - ub : ub - ua)                     \
  SIMT_PARTS(__vhaddu##n, bits, S, U, (ua + ub) >> 1)                                     \
  SIMT_PARTS(__vavgu##n, bits, S, U, (ua + ub + 1) >> 1)                                  \
  SIMT_PARTS(__vavgs##n, bits, S, U, (sa + sb + 1) >> 1)                                  \
  SIMT_PARTS_1(__vneg##n, bits, S, U, -sa)                                                \
  SIMT_PARTS_1(__vnegss##n, bits, S, U, simt::held(-sa, -top, top))                       \
  SIMT_PARTS_1(__vabs##n, bits, S, U, sa < 0 ? -sa : sa)                                  \
  SIMT_PARTS_1(__vabsss##n, bits, S, U, simt::held(sa < 0 ? -sa : sa, 0, top))            \
  SIMT_COMPARE_PARTS(n, bits, S, U, eq, ua == ub)                                         \
  SIMT_COMPARE_PARTS(n, bits, S, U, ne, ua != ub)                                         \
  SIMT_COMPARE_PARTS(n, bits, S, U, lts, sa < sb)                                         \
  SIMT_COMPARE_PARTS(n, bits, S, U, ltu, ua < ub)                                         \
  SIMT_COMPARE_PARTS(n, bits, S, U, les, sa <= sb)                                        \
  SIMT_COMPARE_PARTS(n, bits, S, U, leu, ua <= ub)                                        \
  SIMT_COMPARE_PARTS(n, bits, S, U, gts, sa > sb)                                         \
  SIMT_COMPARE_PARTS(n, bits, S, U, gtu, ua > ub)                                         \
  SIMT_COMPARE_PARTS(n, bits, S, U, ges, sa >= sb)                                        \
  SIMT_COMPARE_PARTS(n, bits, S, U, geu, ua >= ub)                                        \
  inline unsigned __vsadu##n(unsigned a, unsigned b) {                                    \
    unsigned sum = 0;                                                                     \
    for (unsigned word = __vabsdiffu##n(a, b), bit = 0; bit < 32; bit += bits) sum += (U)(word >> bit); \
    return sum;                                                                           \
  }                                                                                       \
  inline unsigned __vsads##n(unsigned a, unsigned b) {                                    \
    unsigned sum = 0;                                                                     \
    for (unsigned word = __vabsdiffs##n(a, b), bit = 0; bit < 32; bit += bits) sum += (U)(word >> bit); \
    return sum;                                                                           \
  }
SIMT_WORD(2, 16, short, unsigned short)
SIMT_WORD(4, 8, signed char, unsigned char)
#undef SIMT_WORD
#undef SIMT_COMPARE_PARTS
#undef SIMT_PARTS_1
#undef SIMT_PARTS

// ---- loads and stores with a cache hint, which a CPU has no use for ----

namespace simt {
template <class T> struct Same { typedef T type; };   // keeps a parameter from taking part in deduction

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

#define SIMT_ONLY_CACHED(name) \
  static_assert(simt::cached<T>, #name " knows numbers and the vectors of 2 or 4 that fit 16 bytes: no struct, no bool, no float3")
#define SIMT_LOAD(name)                         \
  template <class T>                            \
  SIMT_INLINE T name(const T* pointer) {        \
    SIMT_ONLY_CACHED(name);                     \
    return *pointer;                            \
  }
#define SIMT_STORE(name)                                                      \
  template <class T>                                                          \
  SIMT_INLINE void name(T* pointer, typename simt::Same<T>::type value) {     \
    SIMT_ONLY_CACHED(name);                                                   \
    *pointer = value;                                                         \
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

#define SIMT_FENCE(name, scope, fence)                  \
  SIMT_OWN_PROBES void name() {                         \
    SIMT_PROBE_FENCE(simt::Scope::scope);               \
    fence(__ATOMIC_SEQ_CST);                            \
  }
SIMT_FENCE(__threadfence, device, __atomic_thread_fence)
SIMT_FENCE(__threadfence_block, block, __atomic_signal_fence)      // a block runs on one thread
SIMT_FENCE(__threadfence_system, system, __atomic_thread_fence)
#undef SIMT_FENCE

inline long long clock64() {
#if defined(__x86_64__)
  return (long long)__builtin_ia32_rdtsc();
#else
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
#endif
}
inline void __nanosleep(unsigned nanoseconds) {
  const timespec time = {(time_t)(nanoseconds / 1000000000u), (long)(nanoseconds % 1000000000u)};
  ::nanosleep(&time, nullptr);
}

#ifndef __clang__      // which has it
SIMT_INLINE void __builtin_assume(bool condition) { if (!condition) __builtin_unreachable(); }
#endif
[[noreturn]] inline void __trap(int line = __builtin_LINE()) { simt::trap(line); }
SIMT_INLINE void __brkpt() {}
SIMT_INLINE void __prof_trigger(int) {}
