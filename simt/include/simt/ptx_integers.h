// The functions to which PTX's integer instructions are rewritten: products, carries, bit fields, permutations.
#pragma once

#include <simt/hints.h>
#include <simt/integers.h>
#include <simt/probe.h>

namespace simt::ptx {

using u32 = unsigned;
using u64 = unsigned long long;

// The condition code: written by .cc, read by addc, subc and madc. A thread runs from one to the next without a switch.
inline thread_local unsigned carry = 0;

SIMT_INLINE u64 mul_u64(u64 x, u64 y) { return x * y; }
SIMT_INLINE u64 mad_u64(u64 x, u64 y, u64 z) { return x * y + z; }
SIMT_INLINE u32 mul_hi_u32(u32 x, u32 y) { return (u32)((u64)x * y >> 32); }
SIMT_INLINE u32 mul_hi_s32(u32 x, u32 y) { return (u32)(((long long)(int)x * (int)y) >> 32); }
SIMT_INLINE u64 mul_hi_u64(u64 x, u64 y) { return (u64)((unsigned __int128)x * y >> 64); }
SIMT_INLINE u64 mul_hi_s64(u64 x, u64 y) { return (u64)(((__int128)(long long)x * (long long)y) >> 64); }
SIMT_INLINE u32 mad_hi_u32(u32 x, u32 y, u32 z) { return mul_hi_u32(x, y) + z; }
SIMT_INLINE u64 mad_hi_u64(u64 x, u64 y, u64 z) { return mul_hi_u64(x, y) + z; }
SIMT_INLINE u64 mad_wide_u32(u32 x, u32 y, u64 z) { return (u64)x * y + z; }
SIMT_INLINE u64 mad_wide_s32(u32 x, u32 y, u64 z) { return (u64)((long long)(int)x * (int)y) + z; }

// Without probes: the condition code is no memory of the program.
template <class T>
SIMT_OWN_PROBES T add_with(T x, T y, bool read, bool write) {
  const T in = read ? carry : 0, partial = x + y, sum = partial + in;
  if (write) carry = (partial < x) | (sum < partial);
  return sum;
}
template <class T>
SIMT_OWN_PROBES T sub_with(T x, T y, bool read, bool write) {
  const T in = read ? carry : 0, partial = x - y, difference = partial - in;
  if (write) carry = (x < y) | (partial < in);
  return difference;
}
#define SIMT_CARRIES(T)                                                                  \
  SIMT_INLINE T add_cc_##T(T x, T y) { return add_with<T>(x, y, false, true); }          \
  SIMT_INLINE T addc_##T(T x, T y) { return add_with<T>(x, y, true, false); }            \
  SIMT_INLINE T addc_cc_##T(T x, T y) { return add_with<T>(x, y, true, true); }          \
  SIMT_INLINE T sub_cc_##T(T x, T y) { return sub_with<T>(x, y, false, true); }          \
  SIMT_INLINE T subc_##T(T x, T y) { return sub_with<T>(x, y, true, false); }            \
  SIMT_INLINE T subc_cc_##T(T x, T y) { return sub_with<T>(x, y, true, true); }          \
  SIMT_INLINE T mad_lo_cc_##T(T x, T y, T z) { return add_cc_##T(x * y, z); }            \
  SIMT_INLINE T madc_lo_##T(T x, T y, T z) { return addc_##T(x * y, z); }                \
  SIMT_INLINE T madc_lo_cc_##T(T x, T y, T z) { return addc_cc_##T(x * y, z); }          \
  SIMT_INLINE T mad_hi_cc_##T(T x, T y, T z) { return add_cc_##T(mul_hi_##T(x, y), z); } \
  SIMT_INLINE T madc_hi_##T(T x, T y, T z) { return addc_##T(mul_hi_##T(x, y), z); }     \
  SIMT_INLINE T madc_hi_cc_##T(T x, T y, T z) { return addc_cc_##T(mul_hi_##T(x, y), z); }
SIMT_CARRIES(u32)
SIMT_CARRIES(u64)
#undef SIMT_CARRIES

SIMT_INLINE u32 min_u32(u32 x, u32 y) { return x < y ? x : y; }
SIMT_INLINE u32 max_u32(u32 x, u32 y) { return x > y ? x : y; }
SIMT_INLINE u32 min_s32(u32 x, u32 y) { return (int)x < (int)y ? x : y; }
SIMT_INLINE u32 max_s32(u32 x, u32 y) { return (int)x > (int)y ? x : y; }
SIMT_INLINE u32 neg_s32(u32 x) { return 0u - x; }
SIMT_INLINE u32 abs_s32(u32 x) { return (int)x < 0 ? 0u - x : x; }
SIMT_INLINE u32 popc_b32(u32 x) { return (u32)__builtin_popcount(x); }
SIMT_INLINE u32 clz_b32(u32 x) { return x ? (u32)__builtin_clz(x) : 32u; }
SIMT_INLINE u32 brev_b32(u32 x) { return ::__brev(x); }
SIMT_INLINE u32 field_mask(u32 length) { return length < 32 ? (1u << length) - 1u : ~0u; }
SIMT_INLINE u32 bfe_u32(u32 x, u32 position, u32 length) {
  position &= 255, length &= 255;
  return position < 32 ? x >> position & field_mask(length) : 0u;
}
SIMT_INLINE u32 bfe_s32(u32 x, u32 position, u32 length) {
  position &= 255, length &= 255;
  const u32 last = position + length - 1, sign = length ? x >> (last < 31 ? last : 31) & 1 : 0;
  const u32 held = position < 32 ? (32 - position < length ? 32 - position : length) : 0;
  return bfe_u32(x, position, length) | (sign ? ~field_mask(held) : 0u);
}
SIMT_INLINE u32 bfi_b32(u32 field, u32 into, u32 position, u32 length) {
  position &= 255, length &= 255;
  if (position > 31) return into;
  const u32 mask = field_mask(length) << position;
  return (into & ~mask) | (field << position & mask);
}
SIMT_INLINE u32 prmt_b32(u32 x, u32 y, u32 selector) {
  const u64 bytes = (u64)y << 32 | x;
  u32 result = 0;
  for (int i = 0; i < 4; ++i, selector >>= 4) {
    u32 byte = (u32)(bytes >> (selector & 7) * 8) & 255;
    if (selector & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << i * 8;
  }
  return result;
}

}  // namespace simt::ptx
