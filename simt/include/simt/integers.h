// CUDA's integer intrinsics: bits of a word, products of 24 and 64 bits, and two or four numbers in one word.
#pragma once

#include <limits.h>
#include <stdlib.h>

#include <simt/runtime.h>

// ---- integers ----

SIMT_INLINE int __popc(unsigned x) { return __builtin_popcount(x); }
SIMT_INLINE int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
SIMT_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
SIMT_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
SIMT_INLINE int __ffs(int x) { return __builtin_ffs(x); }
SIMT_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
SIMT_COUNTED unsigned __brev(unsigned x) {
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
SIMT_COUNTED unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) result |= (unsigned)(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
  return result;
}
SIMT_INLINE int __mul24(int x, int y) {
  return (int)((unsigned)((int)((unsigned)x << 8) >> 8) * (unsigned)((int)((unsigned)y << 8) >> 8));
}
SIMT_INLINE unsigned __umul24(unsigned x, unsigned y) { return (x & 0xFFFFFFu) * (y & 0xFFFFFFu); }
SIMT_INLINE int __mulhi(int x, int y) { return (int)((long long)x * y >> 32); }
SIMT_INLINE unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
SIMT_INLINE long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
SIMT_INLINE unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
SIMT_INLINE unsigned __sad(int x, int y, unsigned z) {
  return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x);
}
SIMT_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) { return z + (x > y ? x - y : y - x); }
SIMT_INLINE int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
SIMT_INLINE int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
SIMT_INLINE unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
SIMT_INLINE unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
// The 64-bit number hi:lo shifted; the high word of a left shift, the low word of a right one.
SIMT_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned shift) {
  return (unsigned)((((unsigned long long)hi << 32 | lo) << (shift & 31)) >> 32);
}
SIMT_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
SIMT_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned shift) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (shift & 31));
}
SIMT_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned shift) {
  return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}

SIMT_COUNTED int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += (signed char)(a >> i) * (signed char)(b >> i);
  return c;
}
SIMT_COUNTED unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xFF) * (b >> i & 0xFF);
  return c;
}
SIMT_COUNTED int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
SIMT_COUNTED unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) {
  return c + (unsigned)(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
// Two 16-bit numbers of `a` times the low or the high two bytes of `b`.
SIMT_COUNTED int __dp2a_lo(int a, int b, int c) {
  return c + (short)a * (signed char)b + (short)(a >> 16) * (signed char)(b >> 8);
}
SIMT_COUNTED int __dp2a_hi(int a, int b, int c) { return __dp2a_lo(a, b >> 16, c); }
SIMT_COUNTED unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xFFFF) * (b & 0xFF) + (a >> 16) * (b >> 8 & 0xFF);
}
SIMT_COUNTED unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }

// ---- two 16-bit or four 8-bit numbers in a word ----

namespace simt {
SIMT_INLINE int held(int x, int low, int high) { return x < low ? low : x > high ? high : x; }
}  // namespace simt

// `signed_x` and `unsigned_x` are the part at `bit` read either way; `all` is the unsigned part's largest value.
#define SIMT_PARTS(name, bits, S, U, combine)                                                   \
  inline unsigned name(unsigned a, unsigned b) {                                                \
    unsigned word = 0;                                                                          \
    constexpr int all = (1 << bits) - 1, top = all >> 1;                                        \
    (void)all, (void)top;                                                                       \
    for (int bit = 0; bit < 32; bit += bits) {                                                  \
      const int sa = (S)(a >> bit), sb = (S)(b >> bit), ua = (U)(a >> bit), ub = (U)(b >> bit); \
      (void)sa, (void)sb, (void)ua, (void)ub;                                                   \
      word |= ((unsigned)(combine) & (unsigned)all) << bit;                                     \
    }                                                                                           \
    return word;                                                                                \
  }
#define SIMT_PARTS_1(name, bits, S, U, combine) \
  SIMT_PARTS(simt_##name, bits, S, U, combine)  \
  inline unsigned name(unsigned a) { return simt_##name(a, 0); }
#define SIMT_COMPARE_PARTS(n, bits, S, U, name, test)       \
  SIMT_PARTS(__vcmp##name##n, bits, S, U, (test) ? all : 0) \
  SIMT_PARTS(__vset##name##n, bits, S, U, (test) ? 1 : 0)
#define SIMT_WORD(n, bits, S, U)                                                                        \
  SIMT_PARTS(__vadd##n, bits, S, U, ua + ub)                                                            \
  SIMT_PARTS(__vaddss##n, bits, S, U, simt::held(sa + sb, -top - 1, top))                               \
  SIMT_PARTS(__vaddus##n, bits, S, U, simt::held(ua + ub, 0, all))                                      \
  SIMT_PARTS(__vsub##n, bits, S, U, ua - ub)                                                            \
  SIMT_PARTS(__vsubss##n, bits, S, U, simt::held(sa - sb, -top - 1, top))                               \
  SIMT_PARTS(__vsubus##n, bits, S, U, simt::held(ua - ub, 0, all))                                      \
  SIMT_PARTS(__vmaxs##n, bits, S, U, sa > sb ? sa : sb)                                                 \
  SIMT_PARTS(__vmaxu##n, bits, S, U, ua > ub ? ua : ub)                                                 \
  SIMT_PARTS(__vmins##n, bits, S, U, sa < sb ? sa : sb)                                                 \
  SIMT_PARTS(__vminu##n, bits, S, U, ua < ub ? ua : ub)                                                 \
  SIMT_PARTS(__vabsdiffs##n, bits, S, U, sa > sb ? sa - sb : sb - sa)                                   \
  SIMT_PARTS(__vabsdiffu##n, bits, S, U, ua > ub ? ua - ub : ub - ua)                                   \
  SIMT_PARTS(__vhaddu##n, bits, S, U, (ua + ub) >> 1)                                                   \
  SIMT_PARTS(__vavgu##n, bits, S, U, (ua + ub + 1) >> 1)                                                \
  SIMT_PARTS(__vavgs##n, bits, S, U, (sa + sb + 1) >> 1)                                                \
  SIMT_PARTS_1(__vneg##n, bits, S, U, -sa)                                                              \
  SIMT_PARTS_1(__vnegss##n, bits, S, U, simt::held(-sa, -top, top))                                     \
  SIMT_PARTS_1(__vabs##n, bits, S, U, sa < 0 ? -sa : sa)                                                \
  SIMT_PARTS_1(__vabsss##n, bits, S, U, simt::held(sa < 0 ? -sa : sa, 0, top))                          \
  SIMT_COMPARE_PARTS(n, bits, S, U, eq, ua == ub)                                                       \
  SIMT_COMPARE_PARTS(n, bits, S, U, ne, ua != ub)                                                       \
  SIMT_COMPARE_PARTS(n, bits, S, U, lts, sa < sb)                                                       \
  SIMT_COMPARE_PARTS(n, bits, S, U, ltu, ua < ub)                                                       \
  SIMT_COMPARE_PARTS(n, bits, S, U, les, sa <= sb)                                                      \
  SIMT_COMPARE_PARTS(n, bits, S, U, leu, ua <= ub)                                                      \
  SIMT_COMPARE_PARTS(n, bits, S, U, gts, sa > sb)                                                       \
  SIMT_COMPARE_PARTS(n, bits, S, U, gtu, ua > ub)                                                       \
  SIMT_COMPARE_PARTS(n, bits, S, U, ges, sa >= sb)                                                      \
  SIMT_COMPARE_PARTS(n, bits, S, U, geu, ua >= ub)                                                      \
  inline unsigned __vsadu##n(unsigned a, unsigned b) {                                                  \
    unsigned sum = 0;                                                                                   \
    for (unsigned word = __vabsdiffu##n(a, b), bit = 0; bit < 32; bit += bits) sum += (U)(word >> bit); \
    return sum;                                                                                         \
  }                                                                                                     \
  inline unsigned __vsads##n(unsigned a, unsigned b) {                                                  \
    unsigned sum = 0;                                                                                   \
    for (unsigned word = __vabsdiffs##n(a, b), bit = 0; bit < 32; bit += bits) sum += (U)(word >> bit); \
    return sum;                                                                                         \
  }
SIMT_WORD(2, 16, short, unsigned short)
SIMT_WORD(4, 8, signed char, unsigned char)
#undef SIMT_WORD
#undef SIMT_COMPARE_PARTS
#undef SIMT_PARTS_1
#undef SIMT_PARTS
