// CUDA's 16-bit floats with 11 significant bits: __half, __half2 and what cuda_fp16.h does with them.
#pragma once

#include <simt/narrow.h>

namespace simt {

SIMT_COUNTED float half_to_float(unsigned short h) {
  const unsigned size = h & 0x7fffu;
  // Subnormal numbers are multiples of 2^-24; the others differ in the exponent's offset (112) and in infinity's.
  const unsigned normal = (size << 13) + (size >= 0x7c00 ? 224u << 23 : 112u << 23);
  const unsigned bits = size < 0x400 ? __float_as_uint((float)size * 0x1p-24f) : normal;
  return __uint_as_float(bits | (h & 0x8000u) << 16);
}

SIMT_COUNTED unsigned short float_to_half(float f) {
  const unsigned bits = __float_as_uint(f), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  if (size > 0x7f800000u) return 0x7fff;
  if (size >= 0x47800000u) return (unsigned short)(sign | 0x7c00);                         // 65536 and more
  if (size >= 0x38800000u)                                                                 // 2^-14: normal
    return (unsigned short)(sign | ((size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13));
  // Adding 1/2 lets the processor round to multiples of 2^-24.
  return (unsigned short)(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u));
}

}  // namespace simt

#define SIMT_T __half
#define SIMT_T2 __half2
#define SIMT_RAW __half_raw
#define SIMT_RAW2 __half2_raw
#define SIMT_N half
#define SIMT_N2 half2
#define SIMT_OTHER struct __nv_bfloat16
#define SIMT_DIGITS 11
#define SIMT_LEAST -14
#define SIMT_FROM_BITS(u) simt::half_to_float(u)
#define SIMT_TO_BITS(f) simt::float_to_half(f)
#define SIMT_FROM_TORCH
#ifdef __CUDA_NO_HALF_CONVERSIONS__
#define SIMT_HIDE_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_HALF_OPERATORS__
#define SIMT_HIDE_OPERATORS 1
#endif
#ifdef __CUDA_NO_HALF2_OPERATORS__
#define SIMT_HIDE_OPERATORS2 1
#endif
#include <simt/sixteen.h>

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;

inline constexpr __half CUDART_INF_FP16 = __half_raw{0x7c00};
inline constexpr __half CUDART_NAN_FP16 = __half_raw{0x7fff};
inline constexpr __half CUDART_MIN_DENORM_FP16 = __half_raw{0x0001};
inline constexpr __half CUDART_MAX_NORMAL_FP16 = __half_raw{0x7bff};
inline constexpr __half CUDART_NEG_ZERO_FP16 = __half_raw{0x8000};
inline constexpr __half CUDART_ZERO_FP16 = __half_raw{0x0000};
inline constexpr __half CUDART_ONE_FP16 = __half_raw{0x3c00};
