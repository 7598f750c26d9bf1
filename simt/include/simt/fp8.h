// CUDA's floats of 8 bits: __nv_fp8_e4m3 and __nv_fp8_e5m2, their pairs and fours, and what cuda_fp8.h does with them.
//
// The formats are those of "FP8 Formats for Deep Learning" (Micikevicius et al., 2022): e4m3 has no infinity, its largest
// number is 448, and only 0x7f and 0xff are NaN; e5m2 is the upper half of a __half, with 57344 as the largest number.
#pragma once

#include <climits>

#include <simt/bfloat16.h>
#include <simt/half.h>

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
// Beyond the largest number: NaN (e4m3) and infinity (e5m2), or the largest number.
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

// ---- conversions to 8 bits, rounded to nearest even ----

SIMT_COUNTED __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t saturation,
                                                       __nv_fp8_interpretation_t kind) {
  const int digits = kind == __NV_E4M3 ? 4 : 3, least = kind == __NV_E4M3 ? -6 : -14;
  const unsigned largest = kind == __NV_E4M3 ? 0x7e : 0x7b;
  const unsigned sign = __builtin_signbit(x) ? 0x80 : 0;
  if (x != x) {  // of a double's NaN the sign and the highest bits stay, of other types' NaN nothing
    const auto second = (unsigned)(__double_as_longlong(x) >> 50) & 1;
    return (__nv_fp8_storage_t)(sign | (kind == __NV_E4M3 ? 0x7f : 0x7e | second));
  }
  const double size = __builtin_fabs(x);
  unsigned bits = largest + 1;
  if (size < 0x1p20) {
    const int exponent = (int)(__double_as_longlong(size) >> 52) - 1023;
    const int step = (exponent > least ? exponent : least) - (digits - 1);  // the result is a multiple of 2^step
    const double scaled = size * __longlong_as_double((long long)(1023 - step) << 52);
    unsigned multiple = (unsigned)scaled;
    const double rest = scaled - multiple;
    multiple += rest > 0.5 || (rest == 0.5 && (multiple & 1));
    bits = ((unsigned)(step + digits - 1 - least) << (digits - 1)) + multiple;  // a carry moves the exponent up
  }
  if (bits > largest) bits = largest + (saturation == __NV_NOSAT);
  return (__nv_fp8_storage_t)(sign | bits);
}
SIMT_INLINE __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t saturation,
                                                     __nv_fp8_interpretation_t kind) {
  return x != x ? 0x7f : __nv_cvt_double_to_fp8((double)x, saturation, kind);
}
SIMT_INLINE __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t saturation,
                                                       __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(simt::half_to_float(x.x), saturation, kind);
}
SIMT_INLINE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x, __nv_saturation_t saturation,
                                                           __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float_to_fp8(simt::bfloat16_to_float(x.x), saturation, kind);
}

// Two at once, the first in the low byte.
#define SIMT_PAIR(name, one, T)                                                                              \
  SIMT_INLINE __nv_fp8x2_storage_t name(T x, __nv_saturation_t saturation, __nv_fp8_interpretation_t kind) { \
    return (__nv_fp8x2_storage_t)(one(x.x, saturation, kind) | one(x.y, saturation, kind) << 8);             \
  }
SIMT_PAIR(__nv_cvt_double2_to_fp8x2, __nv_cvt_double_to_fp8, double2)
SIMT_PAIR(__nv_cvt_float2_to_fp8x2, __nv_cvt_float_to_fp8, float2)
#undef SIMT_PAIR
SIMT_INLINE __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t saturation,
                                                            __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2({simt::half_to_float(x.x), simt::half_to_float(x.y)}, saturation, kind);
}
SIMT_INLINE __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw x, __nv_saturation_t saturation,
                                                                __nv_fp8_interpretation_t kind) {
  return __nv_cvt_float2_to_fp8x2({simt::bfloat16_to_float(x.x), simt::bfloat16_to_float(x.y)}, saturation, kind);
}

// ---- conversions from 8 bits, which are exact ----

SIMT_COUNTED __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
  const unsigned size = x & 0x7fu, sign = (x & 0x80u) << 8;
  if (kind == __NV_E5M2) return {(unsigned short)(size > 0x7c ? 0x7fff : x << 8)};
  if (size == 0x7f) return {0x7fff};
  if (size < 8) return {(unsigned short)(sign | simt::float_to_half((float)size * 0x1p-9f))};
  return {(unsigned short)(sign | ((size << 7) + (8u << 10)))};  // the exponents differ by 8
}
SIMT_INLINE __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x, kind).x,
          __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(x >> 8), kind).x};
}

// ---- types ----

namespace simt {

template <__nv_fp8_interpretation_t Kind>
struct Fp8 {
  __nv_fp8_storage_t __x;

  Fp8() = default;
  SIMT_INLINE explicit Fp8(float x) : __x(__nv_cvt_float_to_fp8(x, __NV_SATFINITE, Kind)) {}
  SIMT_INLINE explicit Fp8(double x) : __x(__nv_cvt_double_to_fp8(x, __NV_SATFINITE, Kind)) {}
  SIMT_INLINE explicit Fp8(__half x) : Fp8(__half2float(x)) {}
  SIMT_INLINE explicit Fp8(__nv_bfloat16 x) : Fp8(__bfloat162float(x)) {}
  // The integers that a float does not hold are beyond the largest number.
  SIMT_INLINE explicit Fp8(short x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(unsigned short x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(int x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(unsigned x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(long x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(unsigned long x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(long long x) : Fp8((float)x) {}
  SIMT_INLINE explicit Fp8(unsigned long long x) : Fp8((float)x) {}

  SIMT_INLINE explicit operator __half() const { return __nv_cvt_fp8_to_halfraw(__x, Kind); }
  SIMT_INLINE explicit operator float() const { return half_to_float(__nv_cvt_fp8_to_halfraw(__x, Kind).x); }
  SIMT_INLINE explicit operator double() const { return (double)(float)*this; }
  SIMT_INLINE explicit operator __nv_bfloat16() const { return __float2bfloat16((float)*this); }
  SIMT_INLINE explicit operator bool() const { return (__x & 0x7f) != 0; }
  // Cut towards zero and to the type's range; NaN gives 0.
  SIMT_INLINE explicit operator char() const { return (char)integer((float)*this, CHAR_MIN, CHAR_MAX); }
  SIMT_INLINE explicit operator signed char() const { return (signed char)integer((float)*this, SCHAR_MIN, SCHAR_MAX); }
  SIMT_INLINE explicit operator unsigned char() const { return (unsigned char)integer((float)*this, 0, UCHAR_MAX); }
  SIMT_INLINE explicit operator short() const { return (short)integer((float)*this, SHRT_MIN, SHRT_MAX); }
  SIMT_INLINE explicit operator unsigned short() const { return (unsigned short)integer((float)*this, 0, USHRT_MAX); }
  SIMT_INLINE explicit operator int() const { return __float2int_rz((float)*this); }
  SIMT_INLINE explicit operator unsigned() const { return __float2uint_rz((float)*this); }
  SIMT_INLINE explicit operator long() const { return __float2ll_rz((float)*this); }
  SIMT_INLINE explicit operator unsigned long() const { return __float2ull_rz((float)*this); }
  SIMT_INLINE explicit operator long long() const { return __float2ll_rz((float)*this); }
  SIMT_INLINE explicit operator unsigned long long() const { return __float2ull_rz((float)*this); }
};

template <__nv_fp8_interpretation_t Kind>
struct alignas(2) Fp8x2 {
  __nv_fp8x2_storage_t __x;

  Fp8x2() = default;
  SIMT_INLINE explicit Fp8x2(float2 x) : __x(__nv_cvt_float2_to_fp8x2(x, __NV_SATFINITE, Kind)) {}
  SIMT_INLINE explicit Fp8x2(double2 x) : __x(__nv_cvt_double2_to_fp8x2(x, __NV_SATFINITE, Kind)) {}
  SIMT_INLINE explicit Fp8x2(__half2 x) : Fp8x2(__half22float2(x)) {}
  SIMT_INLINE explicit Fp8x2(__nv_bfloat162 x) : Fp8x2(__bfloat1622float2(x)) {}

  SIMT_INLINE explicit operator __half2() const { return __nv_cvt_fp8x2_to_halfraw2(__x, Kind); }
  SIMT_INLINE explicit operator float2() const {
    const __half2_raw both = __nv_cvt_fp8x2_to_halfraw2(__x, Kind);
    return {half_to_float(both.x), half_to_float(both.y)};
  }
};

template <__nv_fp8_interpretation_t Kind>
struct alignas(4) Fp8x4 {
  __nv_fp8x4_storage_t __x;

  Fp8x4() = default;
  SIMT_INLINE explicit Fp8x4(float4 x) : Fp8x4(Fp8x2<Kind>(float2{x.x, x.y}), Fp8x2<Kind>(float2{x.z, x.w})) {}
  SIMT_INLINE explicit Fp8x4(double4 x) : Fp8x4(Fp8x2<Kind>(double2{x.x, x.y}), Fp8x2<Kind>(double2{x.z, x.w})) {}
  SIMT_INLINE explicit Fp8x4(__half2 low, __half2 high) : Fp8x4(Fp8x2<Kind>(low), Fp8x2<Kind>(high)) {}
  SIMT_INLINE explicit Fp8x4(__nv_bfloat162 low, __nv_bfloat162 high) : Fp8x4(Fp8x2<Kind>(low), Fp8x2<Kind>(high)) {}

  SIMT_INLINE explicit operator float4() const {
    const __nv_fp8x4_storage_t all = __x;  // one load
    const __half2_raw low = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)all, Kind);
    const __half2_raw high = __nv_cvt_fp8x2_to_halfraw2((__nv_fp8x2_storage_t)(all >> 16), Kind);
    return {half_to_float(low.x), half_to_float(low.y), half_to_float(high.x), half_to_float(high.y)};
  }

 private:
  SIMT_INLINE Fp8x4(Fp8x2<Kind> low, Fp8x2<Kind> high) : __x(low.__x | (unsigned)high.__x << 16) {}
};

}  // namespace simt

#define SIMT_FP8(name, Base, kind) \
  struct name : simt::Base<kind> { \
    using simt::Base<kind>::Base;  \
  };
SIMT_FP8(__nv_fp8_e4m3, Fp8, __NV_E4M3)
SIMT_FP8(__nv_fp8_e5m2, Fp8, __NV_E5M2)
SIMT_FP8(__nv_fp8x2_e4m3, Fp8x2, __NV_E4M3)
SIMT_FP8(__nv_fp8x2_e5m2, Fp8x2, __NV_E5M2)
SIMT_FP8(__nv_fp8x4_e4m3, Fp8x4, __NV_E4M3)
SIMT_FP8(__nv_fp8x4_e5m2, Fp8x4, __NV_E5M2)
#undef SIMT_FP8
