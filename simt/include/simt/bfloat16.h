// CUDA's 16-bit floats with float's range: __nv_bfloat16, __nv_bfloat162 and what cuda_bf16.h does with them.
#pragma once

#include <simt/half.h>
#include <simt/narrow.h>

namespace simt {

SIMT_INLINE float bfloat16_to_float(unsigned short h) { return __uint_as_float((unsigned)h << 16); }

SIMT_COUNTED unsigned short float_to_bfloat16(float f) {
  const unsigned bits = __float_as_uint(f);
  return f != f ? 0x7fff : (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace simt

#define SIMT_T __nv_bfloat16
#define SIMT_T2 __nv_bfloat162
#define SIMT_RAW __nv_bfloat16_raw
#define SIMT_RAW2 __nv_bfloat162_raw
#define SIMT_N bfloat16
#define SIMT_N2 bfloat162
#define SIMT_OTHER __half
#define SIMT_DIGITS 8
#define SIMT_LEAST -126
#define SIMT_FROM_BITS(u) simt::bfloat16_to_float(u)
#define SIMT_TO_BITS(f) simt::float_to_bfloat16(f)
#define SIMT_FROM_TORCH explicit
#ifdef __CUDA_NO_BFLOAT16_CONVERSIONS__
#define SIMT_HIDE_CONVERSIONS 1
#endif
#ifdef __CUDA_NO_BFLOAT16_OPERATORS__
#define SIMT_HIDE_OPERATORS 1
#endif
#ifdef __CUDA_NO_BFLOAT162_OPERATORS__
#define SIMT_HIDE_OPERATORS2 1
#endif
#include <simt/sixteen.h>

#ifndef __CUDA_NO_BFLOAT16_CONVERSIONS__
SIMT_INLINE __nv_bfloat16::__nv_bfloat16(__half other) : __nv_bfloat16(__half2float(other)) {}
#endif
#ifndef __CUDA_NO_HALF_CONVERSIONS__
SIMT_INLINE __half::__half(__nv_bfloat16 other) : __half(__bfloat162float(other)) {}
#endif

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

inline constexpr __nv_bfloat16 CUDART_INF_BF16 = __nv_bfloat16_raw{0x7f80};
inline constexpr __nv_bfloat16 CUDART_NAN_BF16 = __nv_bfloat16_raw{0x7fff};
inline constexpr __nv_bfloat16 CUDART_MIN_DENORM_BF16 = __nv_bfloat16_raw{0x0001};
inline constexpr __nv_bfloat16 CUDART_MAX_NORMAL_BF16 = __nv_bfloat16_raw{0x7f7f};
inline constexpr __nv_bfloat16 CUDART_NEG_ZERO_BF16 = __nv_bfloat16_raw{0x8000};
inline constexpr __nv_bfloat16 CUDART_ZERO_BF16 = __nv_bfloat16_raw{0x0000};
inline constexpr __nv_bfloat16 CUDART_ONE_BF16 = __nv_bfloat16_raw{0x3f80};
