// CUDA's arithmetic and conversions in a named rounding direction (__fadd_rn, __float2int_rz).
#pragma once

#include <fenv.h>
#include <limits.h>
#include <math.h>

#include <simt/math.h>

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
  inline R name(T x_) {                               \
    volatile T x = x_;                                \
    SIMT_DIRECTED(mode, R, expression)                \
  }
#define SIMT_DIRECTED_2(mode, R, name, T, expression) \
  inline R name(T x_, T y_) {                         \
    volatile T x = x_, y = y_;                        \
    SIMT_DIRECTED(mode, R, expression)                \
  }
#define SIMT_DIRECTED_3(mode, R, name, T, expression) \
  inline R name(T x_, T y_, T z_) {                   \
    volatile T x = x_, y = y_, z = z_;                \
    SIMT_DIRECTED(mode, R, expression)                \
  }
#define SIMT_DIRECTED_ALL(rounding, mode)                                            \
  SIMT_DIRECTED_2(mode, float, __fadd_##rounding, float, x + y)                      \
  SIMT_DIRECTED_2(mode, float, __fsub_##rounding, float, x - y)                      \
  SIMT_DIRECTED_2(mode, float, __fmul_##rounding, float, x* y)                       \
  SIMT_DIRECTED_2(mode, float, __fdiv_##rounding, float, x / y)                      \
  SIMT_DIRECTED_3(mode, float, __fmaf_##rounding, float, ::fmaf(x, y, z))            \
  SIMT_DIRECTED_1(mode, float, __frcp_##rounding, float, 1 / x)                      \
  SIMT_DIRECTED_1(mode, float, __fsqrt_##rounding, float, __builtin_sqrtf(x))        \
  SIMT_DIRECTED_2(mode, double, __dadd_##rounding, double, x + y)                    \
  SIMT_DIRECTED_2(mode, double, __dsub_##rounding, double, x - y)                    \
  SIMT_DIRECTED_2(mode, double, __dmul_##rounding, double, x* y)                     \
  SIMT_DIRECTED_2(mode, double, __ddiv_##rounding, double, x / y)                    \
  SIMT_DIRECTED_3(mode, double, __fma_##rounding, double, ::fma(x, y, z))            \
  SIMT_DIRECTED_1(mode, double, __drcp_##rounding, double, 1 / x)                    \
  SIMT_DIRECTED_1(mode, double, __dsqrt_##rounding, double, __builtin_sqrt(x))       \
  SIMT_DIRECTED_1(mode, float, __double2float_##rounding, double, (float)x)          \
  SIMT_DIRECTED_1(mode, float, __int2float_##rounding, int, (float)x)                \
  SIMT_DIRECTED_1(mode, float, __uint2float_##rounding, unsigned, (float)x)          \
  SIMT_DIRECTED_1(mode, float, __ll2float_##rounding, long long, (float)x)           \
  SIMT_DIRECTED_1(mode, float, __ull2float_##rounding, unsigned long long, (float)x) \
  SIMT_DIRECTED_1(mode, double, __ll2double_##rounding, long long, (double)x)        \
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

#define SIMT_TO_INTEGER(name, F, I, low, high, nan, rounded)              \
  SIMT_INLINE I name(F x) {                                               \
    x = rounded;                                                          \
    return x != x ? nan : x <= (F)low ? low : x >= (F)high ? high : (I)x; \
  }
#define SIMT_TO_INTEGERS(rounding, round)                                                                       \
  SIMT_TO_INTEGER(__float2int_##rounding, float, int, INT_MIN, INT_MAX, 0, round##f(x))                         \
  SIMT_TO_INTEGER(__float2uint_##rounding, float, unsigned, 0u, UINT_MAX, 0u, round##f(x))                      \
  SIMT_TO_INTEGER(__float2ll_##rounding, float, long long, LLONG_MIN, LLONG_MAX, LLONG_MIN, round##f(x))        \
  SIMT_TO_INTEGER(__float2ull_##rounding, float, unsigned long long, 0ull, ULLONG_MAX, 1ull << 63, round##f(x)) \
  SIMT_TO_INTEGER(__double2int_##rounding, double, int, INT_MIN, INT_MAX, INT_MIN, round(x))                    \
  SIMT_TO_INTEGER(__double2uint_##rounding, double, unsigned, 0u, UINT_MAX, 1u << 31, round(x))                 \
  SIMT_TO_INTEGER(__double2ll_##rounding, double, long long, LLONG_MIN, LLONG_MAX, LLONG_MIN, round(x))         \
  SIMT_TO_INTEGER(__double2ull_##rounding, double, unsigned long long, 0ull, ULLONG_MAX, 1ull << 63, round(x))
SIMT_TO_INTEGERS(rn, __builtin_rint)
SIMT_TO_INTEGERS(rz, __builtin_trunc)
SIMT_TO_INTEGERS(ru, __builtin_ceil)
SIMT_TO_INTEGERS(rd, __builtin_floor)
#undef SIMT_TO_INTEGERS
#undef SIMT_TO_INTEGER
