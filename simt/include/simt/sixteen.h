// What __half and __nv_bfloat16 have in common: included once for each, by half.h and bfloat16.h, hence no guard.
//
// The including header defines
//   SIMT_T, SIMT_T2, SIMT_RAW, SIMT_RAW2   the types' names: __half, __half2, __half_raw, __half2_raw
//   SIMT_N, SIMT_N2           their names inside functions' names: half, half2 (bfloat16, bfloat162)
//   SIMT_OTHER                the other type
//   SIMT_DIGITS, SIMT_LEAST   bits of the significand with the hidden one; exponent of the least normal number
//   SIMT_FROM_BITS(u)         the bits as a float
//   SIMT_TO_BITS(f)           the bits of a float, rounded to nearest even, NaN as 0x7fff
//   SIMT_FROM_TORCH           nothing, or `explicit`: the conversion from torch's type of the same format
//   SIMT_HIDE_CONVERSIONS, SIMT_HIDE_OPERATORS, SIMT_HIDE_OPERATORS2   1 where a macro of CUDA's header hides the
//                             conversions from and to built-in types, the type's operators, or those of its pairs
// What follows uses none of the three, so that it is the same with and without them.
// Every operation rounds its exact result once: float holds enough digits for + - * / and sqrt, double for the rest.

#define SIMT_JOIN_(a, b, c, d) a##b##c##d
#define SIMT_JOIN(a, b, c, d) SIMT_JOIN_(a, b, c, d)
#define SIMT_NAME(a, b) SIMT_JOIN(a, SIMT_N, b, )        // __float2 , _rn   -> __float2half_rn
#define SIMT_NAME2(a, b) SIMT_JOIN(a, SIMT_N2, b, )      // __floats2 , _rn  -> __floats2half2_rn

struct SIMT_RAW {
  unsigned short x;
};
struct SIMT_RAW2 {
  unsigned short x, y;
};

#define SIMT_ROUNDED(f) SIMT_T(SIMT_TO_BITS(f), simt::OfBits())
#define SIMT_ROUNDED_DOUBLE(d) SIMT_T(simt::narrowed(d, SIMT_DIGITS, SIMT_LEAST, simt::Round::nearest), simt::OfBits())

// Converts from and to the types that CUDA's converts from and to, implicitly as there. So `h + 1.0f` is ambiguous
// here as it is with nvcc.
struct alignas(2) SIMT_T {
  unsigned short __x;

  SIMT_T() = default;
  constexpr SIMT_T(SIMT_RAW raw) : __x(raw.x) {}
  constexpr operator SIMT_RAW() const { return {__x}; }
  // For simt's own functions. It is part of its caller, which may have no probes.
  SIMT_INLINE SIMT_T(unsigned short bits, simt::OfBits) : __x(bits) {}
  // From and to torch's type of the same format.
  template <simt::TorchsTypeFor<SIMT_T> H>
  SIMT_INLINE SIMT_FROM_TORCH SIMT_T(const H& other) : __x(other.x) {}
#if SIMT_HIDE_CONVERSIONS
  // Otherwise the explicit conversion goes through float, and a second way would be ambiguous.
  template <simt::TorchsTypeFor<SIMT_T> H>
  SIMT_INLINE operator H() const {
    return {__x, H::from_bits()};
  }
#else
  explicit SIMT_T(SIMT_OTHER other);          // through float
  SIMT_INLINE SIMT_T(float f) : __x(SIMT_TO_BITS(f)) {}
  SIMT_INLINE SIMT_T(double d) : __x(simt::narrowed(d, SIMT_DIGITS, SIMT_LEAST, simt::Round::nearest)) {}
  SIMT_INLINE SIMT_T(short i) : SIMT_T((float)i) {}
  SIMT_INLINE SIMT_T(unsigned short i) : SIMT_T((float)i) {}
  SIMT_INLINE SIMT_T(int i) : SIMT_T((double)i) {}
  SIMT_INLINE SIMT_T(unsigned i) : SIMT_T((double)i) {}
  SIMT_INLINE SIMT_T(long i) : SIMT_T(simt::sticky((long long)i)) {}
  SIMT_INLINE SIMT_T(unsigned long i) : SIMT_T(simt::sticky((unsigned long long)i)) {}
  SIMT_INLINE SIMT_T(long long i) : SIMT_T(simt::sticky(i)) {}
  SIMT_INLINE SIMT_T(unsigned long long i) : SIMT_T(simt::sticky(i)) {}

  // As CUDA has none for long, assigning one is ambiguous.
  SIMT_INLINE SIMT_T& operator=(float f) { return *this = SIMT_T(f); }
  SIMT_INLINE SIMT_T& operator=(double d) { return *this = SIMT_T(d); }
  SIMT_INLINE SIMT_T& operator=(short i) { return *this = SIMT_T(i); }
  SIMT_INLINE SIMT_T& operator=(unsigned short i) { return *this = SIMT_T(i); }
  SIMT_INLINE SIMT_T& operator=(int i) { return *this = SIMT_T(i); }
  SIMT_INLINE SIMT_T& operator=(unsigned i) { return *this = SIMT_T(i); }
  SIMT_INLINE SIMT_T& operator=(long long i) { return *this = SIMT_T(i); }
  SIMT_INLINE SIMT_T& operator=(unsigned long long i) { return *this = SIMT_T(i); }

  SIMT_INLINE operator float() const { return SIMT_FROM_BITS(__x); }
  SIMT_INLINE operator bool() const { return (__x & 0x7fff) != 0; }
  SIMT_INLINE operator char() const { return (char)simt::integer((float)*this, CHAR_MIN, CHAR_MAX); }
  SIMT_INLINE operator signed char() const { return (signed char)simt::integer((float)*this, SCHAR_MIN, SCHAR_MAX); }
  SIMT_INLINE operator unsigned char() const { return (unsigned char)simt::integer((float)*this, 0, UCHAR_MAX); }
  SIMT_INLINE operator short() const { return (short)simt::integer((float)*this, SHRT_MIN, SHRT_MAX); }
  SIMT_INLINE operator unsigned short() const { return (unsigned short)simt::integer((float)*this, 0, USHRT_MAX); }
  SIMT_INLINE operator int() const { return __float2int_rz((float)*this); }
  SIMT_INLINE operator unsigned() const { return __float2uint_rz((float)*this); }
  SIMT_INLINE operator long() const { return __float2ll_rz((float)*this); }
  SIMT_INLINE operator unsigned long() const { return __float2ull_rz((float)*this); }
  SIMT_INLINE operator long long() const { return __float2ll_rz((float)*this); }
  SIMT_INLINE operator unsigned long long() const { return __float2ull_rz((float)*this); }
#endif
};

struct alignas(4) SIMT_T2 {
  SIMT_T x, y;

  SIMT_T2() = default;
  constexpr SIMT_T2(SIMT_T a, SIMT_T b) : x(a), y(b) {}
  constexpr SIMT_T2(SIMT_RAW2 raw) : x(SIMT_RAW{raw.x}), y(SIMT_RAW{raw.y}) {}
  constexpr operator SIMT_RAW2() const { return {x.__x, y.__x}; }
};

// ---- conversions ----

#define SIMT_F(h) SIMT_FROM_BITS((h).__x)

SIMT_INLINE float SIMT_NAME(__, 2float)(SIMT_T h) { return SIMT_FROM_BITS(h.__x); }
SIMT_INLINE SIMT_T SIMT_NAME(__float2, )(float f) { return SIMT_ROUNDED(f); }
SIMT_INLINE SIMT_T SIMT_NAME(__float2, _rn)(float f) { return SIMT_ROUNDED(f); }
SIMT_INLINE SIMT_T SIMT_NAME(__double2, )(double d) { return SIMT_ROUNDED_DOUBLE(d); }
SIMT_INLINE unsigned short SIMT_NAME(__, _as_ushort)(SIMT_T h) { return h.__x; }
SIMT_INLINE short SIMT_NAME(__, _as_short)(SIMT_T h) { return (short)h.__x; }
SIMT_INLINE SIMT_T SIMT_NAME(__ushort_as_, )(unsigned short bits) { return SIMT_RAW{bits}; }
SIMT_INLINE SIMT_T SIMT_NAME(__short_as_, )(short bits) { return SIMT_RAW{(unsigned short)bits}; }

#define SIMT_FROM_INTEGER(rounding, round, I, name, value)                               \
  SIMT_INLINE SIMT_T SIMT_NAME(__##name##2, rounding)(I i) {                             \
    return SIMT_RAW{simt::narrowed(value, SIMT_DIGITS, SIMT_LEAST, simt::Round::round)}; \
  }
#define SIMT_TO_INTEGER(rounding, round, I, name, low, high)          \
  SIMT_INLINE I SIMT_NAME(__, 2##name##rounding)(SIMT_T h) {          \
    return (I)simt::integer(round(SIMT_FROM_BITS(h.__x)), low, high); \
  }
#define SIMT_CONVERSIONS(rounding, round, to_integral)                                                                 \
  SIMT_FROM_INTEGER(rounding, round, short, short, i)                                                                  \
  SIMT_FROM_INTEGER(rounding, round, unsigned short, ushort, i)                                                        \
  SIMT_FROM_INTEGER(rounding, round, int, int, i)                                                                      \
  SIMT_FROM_INTEGER(rounding, round, unsigned, uint, i)                                                                \
  SIMT_FROM_INTEGER(rounding, round, long long, ll, simt::sticky(i))                                                   \
  SIMT_FROM_INTEGER(rounding, round, unsigned long long, ull, simt::sticky(i))                                         \
  SIMT_TO_INTEGER(rounding, to_integral, short, short, SHRT_MIN, SHRT_MAX)                                             \
  SIMT_TO_INTEGER(rounding, to_integral, unsigned short, ushort, 0, USHRT_MAX)                                         \
  SIMT_INLINE int SIMT_NAME(__, 2int##rounding)(SIMT_T h) { return __float2int##rounding(SIMT_FROM_BITS(h.__x)); }     \
  SIMT_INLINE unsigned SIMT_NAME(__, 2uint##rounding)(SIMT_T h) {                                                      \
    return __float2uint##rounding(SIMT_FROM_BITS(h.__x));                                                              \
  }                                                                                                                    \
  SIMT_INLINE long long SIMT_NAME(__, 2ll##rounding)(SIMT_T h) { return __float2ll##rounding(SIMT_FROM_BITS(h.__x)); } \
  SIMT_INLINE unsigned long long SIMT_NAME(__, 2ull##rounding)(SIMT_T h) {                                             \
    return __float2ull##rounding(SIMT_FROM_BITS(h.__x));                                                               \
  }
SIMT_CONVERSIONS(_rn, nearest, __builtin_rintf)
SIMT_CONVERSIONS(_rz, to_zero, __builtin_truncf)
SIMT_CONVERSIONS(_ru, up, __builtin_ceilf)
SIMT_CONVERSIONS(_rd, down, __builtin_floorf)
SIMT_TO_INTEGER(_rz, __builtin_truncf, signed char, char, SCHAR_MIN, SCHAR_MAX)
SIMT_TO_INTEGER(_rz, __builtin_truncf, unsigned char, uchar, 0, UCHAR_MAX)
#undef SIMT_CONVERSIONS
#undef SIMT_TO_INTEGER
#undef SIMT_FROM_INTEGER
#define SIMT_FROM_FLOAT(rounding, round)                                                     \
  SIMT_INLINE SIMT_T SIMT_NAME(__float2, rounding)(float f) {                                \
    return SIMT_RAW{simt::narrowed((double)f, SIMT_DIGITS, SIMT_LEAST, simt::Round::round)}; \
  }
SIMT_FROM_FLOAT(_rz, to_zero)
SIMT_FROM_FLOAT(_ru, up)
SIMT_FROM_FLOAT(_rd, down)
#undef SIMT_FROM_FLOAT

SIMT_INLINE SIMT_T2 SIMT_NAME2(__halves2, )(SIMT_T a, SIMT_T b) { return {a, b}; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(make_, )(SIMT_T a, SIMT_T b) { return {a, b}; }
SIMT_INLINE SIMT_T2 SIMT_JOIN(__, SIMT_N, 2, SIMT_N2)(SIMT_T a) { return {a, a}; }      // __half2half2
SIMT_INLINE SIMT_T2 SIMT_NAME2(__float2, _rn)(float f) { return {SIMT_ROUNDED(f), SIMT_ROUNDED(f)}; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(__floats2, _rn)(float a, float b) { return {SIMT_ROUNDED(a), SIMT_ROUNDED(b)}; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(__float22, _rn)(float2 f) { return {SIMT_ROUNDED(f.x), SIMT_ROUNDED(f.y)}; }
SIMT_INLINE float2 SIMT_NAME2(__, 2float2)(SIMT_T2 h) { return {SIMT_F(h.x), SIMT_F(h.y)}; }
SIMT_INLINE float __low2float(SIMT_T2 h) { return SIMT_F(h.x); }
SIMT_INLINE float __high2float(SIMT_T2 h) { return SIMT_F(h.y); }
SIMT_INLINE SIMT_T SIMT_NAME(__low2, )(SIMT_T2 h) { return h.x; }
SIMT_INLINE SIMT_T SIMT_NAME(__high2, )(SIMT_T2 h) { return h.y; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(__low2, )(SIMT_T2 h) { return {h.x, h.x}; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(__high2, )(SIMT_T2 h) { return {h.y, h.y}; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(__lows2, )(SIMT_T2 a, SIMT_T2 b) { return {a.x, b.x}; }
SIMT_INLINE SIMT_T2 SIMT_NAME2(__highs2, )(SIMT_T2 a, SIMT_T2 b) { return {a.y, b.y}; }
SIMT_INLINE SIMT_T2 __lowhigh2highlow(SIMT_T2 h) { return {h.y, h.x}; }

// ---- arithmetic ----

// A name's own pair form: each half on its own.
#define SIMT_PAIR_1(name) \
  SIMT_INLINE SIMT_T2 name##2(SIMT_T2 a) { return {name(a.x), name(a.y)}; }
#define SIMT_PAIR_2(name, pair) \
  SIMT_INLINE SIMT_T2 pair(SIMT_T2 a, SIMT_T2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define SIMT_PAIR_3(name, pair) \
  SIMT_INLINE SIMT_T2 pair(SIMT_T2 a, SIMT_T2 b, SIMT_T2 c) { return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)}; }

// What a GPU does in one instruction, of one number and of a pair, is one function of bits: counting counts its calls.
// (A function that returned a structure would store it where no probe sees that.)
#define SIMT_BITS(a) __builtin_bit_cast(unsigned, a)
#define SIMT_ONE_INSTRUCTION(what, name, expression)                                                         \
  namespace simt {                                                                                           \
  SIMT_COUNTED unsigned short SIMT_NAME(what##_, )(unsigned short p, unsigned short q) {                     \
    const SIMT_T a = SIMT_RAW{p}, b = SIMT_RAW{q};                                                           \
    return SIMT_TO_BITS(expression);                                                                         \
  }                                                                                                          \
  SIMT_COUNTED unsigned SIMT_NAME2(what##_, )(unsigned p, unsigned q) {                                      \
    return SIMT_NAME(what##_, )((unsigned short)p, (unsigned short)q) |                                      \
           (unsigned)SIMT_NAME(what##_, )((unsigned short)(p >> 16), (unsigned short)(q >> 16)) << 16;       \
  }                                                                                                          \
  }                                                                                                          \
  SIMT_INLINE SIMT_T name(SIMT_T a, SIMT_T b) { return SIMT_RAW{simt::SIMT_NAME(what##_, )(a.__x, b.__x)}; } \
  SIMT_INLINE SIMT_T2 name##2(SIMT_T2 a, SIMT_T2 b) {                                                        \
    return __builtin_bit_cast(SIMT_RAW2, simt::SIMT_NAME2(what##_, )(SIMT_BITS(a), SIMT_BITS(b)));           \
  }
SIMT_ONE_INSTRUCTION(add, __hadd, SIMT_F(a) + SIMT_F(b))
SIMT_ONE_INSTRUCTION(sub, __hsub, SIMT_F(a) - SIMT_F(b))
SIMT_ONE_INSTRUCTION(mul, __hmul, SIMT_F(a) * SIMT_F(b))
SIMT_INLINE SIMT_T __hdiv(SIMT_T a, SIMT_T b) { return SIMT_ROUNDED(SIMT_F(a) / SIMT_F(b)); }
SIMT_PAIR_2(__hdiv, __hdiv2)
#undef SIMT_ONE_INSTRUCTION

SIMT_INLINE SIMT_T2 __h2div(SIMT_T2 a, SIMT_T2 b) { return __hdiv2(a, b); }

#define SIMT_VARIANTS(name)                                                                                   \
  SIMT_INLINE SIMT_T name##_rn(SIMT_T a, SIMT_T b) { return name(a, b); }                                     \
  SIMT_INLINE SIMT_T name##_sat(SIMT_T a, SIMT_T b) { return SIMT_ROUNDED(__saturatef(SIMT_F(name(a, b)))); } \
  SIMT_PAIR_2(name##_rn, name##2_rn)                                                                          \
  SIMT_PAIR_2(name##_sat, name##2_sat)
SIMT_VARIANTS(__hadd)
SIMT_VARIANTS(__hsub)
SIMT_VARIANTS(__hmul)
#undef SIMT_VARIANTS

SIMT_INLINE SIMT_T __hneg(SIMT_T a) { return SIMT_RAW{(unsigned short)(a.__x ^ 0x8000)}; }
SIMT_INLINE SIMT_T __habs(SIMT_T a) { return SIMT_RAW{(unsigned short)(a.__x & 0x7fff)}; }
SIMT_PAIR_1(__hneg)
SIMT_PAIR_1(__habs)

namespace simt {
SIMT_COUNTED_APART unsigned short SIMT_NAME(fma_, )(unsigned short a, unsigned short b, unsigned short c) {
  const double product = (double)SIMT_FROM_BITS(a) * (double)SIMT_FROM_BITS(b);   // exact
  return narrowed(odd_sum(product, (double)SIMT_FROM_BITS(c)), SIMT_DIGITS, SIMT_LEAST, Round::nearest);
}
SIMT_COUNTED unsigned SIMT_NAME2(fma_, )(unsigned a, unsigned b, unsigned c) {
  return SIMT_NAME(fma_, )((unsigned short)a, (unsigned short)b, (unsigned short)c) |
         (unsigned)SIMT_NAME(fma_, )((unsigned short)(a >> 16), (unsigned short)(b >> 16), (unsigned short)(c >> 16))
             << 16;
}
}  // namespace simt
SIMT_INLINE SIMT_T __hfma(SIMT_T a, SIMT_T b, SIMT_T c) {
  return SIMT_RAW{simt::SIMT_NAME(fma_, )(a.__x, b.__x, c.__x)};
}
SIMT_INLINE SIMT_T2 __hfma2(SIMT_T2 a, SIMT_T2 b, SIMT_T2 c) {
  return __builtin_bit_cast(SIMT_RAW2, simt::SIMT_NAME2(fma_, )(SIMT_BITS(a), SIMT_BITS(b), SIMT_BITS(c)));
}
SIMT_INLINE SIMT_T __hfma_sat(SIMT_T a, SIMT_T b, SIMT_T c) {
  return SIMT_ROUNDED(__saturatef(SIMT_F(__hfma(a, b, c))));
}
SIMT_INLINE SIMT_T __hfma_relu(SIMT_T a, SIMT_T b, SIMT_T c) {
  const SIMT_T sum = __hfma(a, b, c);
  return SIMT_F(sum) < 0 ? SIMT_ROUNDED(0.0f) : sum;
}
SIMT_PAIR_3(__hfma_sat, __hfma2_sat)
SIMT_PAIR_3(__hfma_relu, __hfma2_relu)
// Complex numbers: x is the real part. a·b + c
SIMT_INLINE SIMT_T2 __hcmadd(SIMT_T2 a, SIMT_T2 b, SIMT_T2 c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

// ---- comparison: with a NaN the plain forms are false (but !=), the `u` forms true ----

#define SIMT_TRUTH(truth) SIMT_ROUNDED((truth) ? 1.0f : 0.0f)
#define SIMT_COMPARE(op, name, unordered)                                                                  \
  SIMT_INLINE bool name(SIMT_T a, SIMT_T b) { return unordered(a, b) ? false : SIMT_F(a) op SIMT_F(b); }   \
  SIMT_INLINE bool name##u(SIMT_T a, SIMT_T b) { return unordered(a, b) ? true : SIMT_F(a) op SIMT_F(b); } \
  SIMT_INLINE SIMT_T2 name##2(SIMT_T2 a, SIMT_T2 b) {                                                      \
    return {SIMT_TRUTH(name(a.x, b.x)), SIMT_TRUTH(name(a.y, b.y))};                                       \
  }                                                                                                        \
  SIMT_INLINE SIMT_T2 name##u2(SIMT_T2 a, SIMT_T2 b) {                                                     \
    return {SIMT_TRUTH(name##u(a.x, b.x)), SIMT_TRUTH(name##u(a.y, b.y))};                                 \
  }                                                                                                        \
  SIMT_INLINE unsigned name##2_mask(SIMT_T2 a, SIMT_T2 b) {                                                \
    return (name(a.x, b.x) ? 0xffffu : 0) | (name(a.y, b.y) ? 0xffff0000u : 0);                            \
  }                                                                                                        \
  SIMT_INLINE unsigned name##u2_mask(SIMT_T2 a, SIMT_T2 b) {                                               \
    return (name##u(a.x, b.x) ? 0xffffu : 0) | (name##u(a.y, b.y) ? 0xffff0000u : 0);                      \
  }
#define SIMT_COMPARE_BOTH(name)                                                                               \
  SIMT_INLINE bool __hb##name##2(SIMT_T2 a, SIMT_T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); } \
  SIMT_INLINE bool __hb##name##u2(SIMT_T2 a, SIMT_T2 b) { return __h##name##u(a.x, b.x) && __h##name##u(a.y, b.y); }
SIMT_INLINE bool __hisnan(SIMT_T a) { return SIMT_F(a) != SIMT_F(a); }
SIMT_INLINE int __hisinf(SIMT_T a) {
  return SIMT_F(a) == __builtin_inff() ? 1 : SIMT_F(a) == -__builtin_inff() ? -1 : 0;
}
SIMT_INLINE SIMT_T2 __hisnan2(SIMT_T2 a) { return {SIMT_TRUTH(__hisnan(a.x)), SIMT_TRUTH(__hisnan(a.y))}; }
namespace simt {
template <> inline constexpr bool cached<SIMT_T> = true;
template <> inline constexpr bool cached<SIMT_T2> = true;
SIMT_INLINE bool unordered(SIMT_T a, SIMT_T b) { return __hisnan(a) || __hisnan(b); }
}  // namespace simt
SIMT_COMPARE(==, __heq, simt::unordered)
SIMT_COMPARE(!=, __hne, simt::unordered)
SIMT_COMPARE(<, __hlt, simt::unordered)
SIMT_COMPARE(<=, __hle, simt::unordered)
SIMT_COMPARE(>, __hgt, simt::unordered)
SIMT_COMPARE(>=, __hge, simt::unordered)
SIMT_COMPARE_BOTH(eq)
SIMT_COMPARE_BOTH(ne)
SIMT_COMPARE_BOTH(lt)
SIMT_COMPARE_BOTH(le)
SIMT_COMPARE_BOTH(gt)
SIMT_COMPARE_BOTH(ge)
#undef SIMT_COMPARE_BOTH
#undef SIMT_COMPARE
#undef SIMT_TRUTH

// ---- operators ----

#define SIMT_OPERATOR(T, op, name)                                         \
  SIMT_INLINE T operator op(const T& a, const T& b) { return name(a, b); } \
  SIMT_INLINE T& operator op## = (T & a, const T& b) { return a = name(a, b); }
#define SIMT_OPERATORS(T, one, add, subtract, multiply, divide, negate) \
  SIMT_OPERATOR(T, +, add)                                              \
  SIMT_OPERATOR(T, -, subtract)                                         \
  SIMT_OPERATOR(T, *, multiply)                                         \
  SIMT_OPERATOR(T, /, divide)                                           \
  SIMT_INLINE T operator+(const T& a) { return a; }                     \
  SIMT_INLINE T operator-(const T& a) { return negate(a); }             \
  SIMT_INLINE T& operator++(T& a) { return a = add(a, one); }           \
  SIMT_INLINE T& operator--(T& a) { return a = subtract(a, one); }      \
  SIMT_INLINE T operator++(T& a, int) {                                 \
    const T before = a;                                                 \
    ++a;                                                                \
    return before;                                                      \
  }                                                                     \
  SIMT_INLINE T operator--(T& a, int) {                                 \
    const T before = a;                                                 \
    --a;                                                                \
    return before;                                                      \
  }
#define SIMT_COMPARISONS(compare) compare(==) compare(!=) compare(<) compare(<=) compare(>) compare(>=)

#if !SIMT_HIDE_OPERATORS
#define SIMT_COMPARE(op) \
  SIMT_INLINE bool operator op(const SIMT_T& a, const SIMT_T& b) { return SIMT_F(a) op SIMT_F(b); }
SIMT_OPERATORS(SIMT_T, SIMT_ROUNDED(1.0f), __hadd, __hsub, __hmul, __hdiv, __hneg)
SIMT_COMPARISONS(SIMT_COMPARE)
#undef SIMT_COMPARE
#endif
#if !SIMT_HIDE_OPERATORS2
#define SIMT_COMPARE(op)                                             \
  SIMT_INLINE bool operator op(const SIMT_T2& a, const SIMT_T2& b) { \
    return SIMT_F(a.x) op SIMT_F(b.x) && SIMT_F(a.y) op SIMT_F(b.y); \
  }
SIMT_OPERATORS(SIMT_T2, (SIMT_T2{SIMT_ROUNDED(1.0f), SIMT_ROUNDED(1.0f)}), __hadd2, __hsub2, __hmul2, __hdiv2, __hneg2)
SIMT_COMPARISONS(SIMT_COMPARE)
#undef SIMT_COMPARE
#endif
#undef SIMT_COMPARISONS
#undef SIMT_OPERATORS
#undef SIMT_OPERATOR

// ---- extremes ----

// A NaN loses against a number, and +0 is above -0; the `_nan` forms give NaN if either is one.
#define SIMT_EXTREME(name, op, zero)                                      \
  SIMT_INLINE SIMT_T name(SIMT_T a, SIMT_T b) {                           \
    const float fa = SIMT_F(a), fb = SIMT_F(b);                           \
    if (fa != fa) return fb != fb ? SIMT_T(SIMT_RAW{0x7fff}) : b;         \
    if (fa == fb) return SIMT_RAW{(unsigned short)(a.__x zero b.__x)};    \
    return fb op fa ? b : a;                                              \
  }                                                                       \
  SIMT_INLINE SIMT_T name##_nan(SIMT_T a, SIMT_T b) {                     \
    return simt::unordered(a, b) ? SIMT_T(SIMT_RAW{0x7fff}) : name(a, b); \
  }                                                                       \
  SIMT_PAIR_2(name, name##2)                                              \
  SIMT_PAIR_2(name##_nan, name##2_nan)
SIMT_EXTREME(__hmin, <, |)
SIMT_EXTREME(__hmax, >, &)
#undef SIMT_EXTREME

// ---- functions ----

#define SIMT_FUNCTION(name, rounded, expression) \
  inline SIMT_T h##name(SIMT_T a) {              \
    const float f = SIMT_F(a);                   \
    return rounded(expression);                  \
  }                                              \
  inline SIMT_T2 h2##name(SIMT_T2 a) { return {h##name(a.x), h##name(a.y)}; }
SIMT_FUNCTION(ceil, SIMT_ROUNDED, ::ceilf(f))
SIMT_FUNCTION(floor, SIMT_ROUNDED, ::floorf(f))
SIMT_FUNCTION(trunc, SIMT_ROUNDED, ::truncf(f))
SIMT_FUNCTION(rint, SIMT_ROUNDED, ::rintf(f))
SIMT_FUNCTION(sqrt, SIMT_ROUNDED, __builtin_sqrtf(f))
SIMT_FUNCTION(rsqrt, SIMT_ROUNDED_DOUBLE, 1 / __builtin_sqrt((double)f))
SIMT_FUNCTION(rcp, SIMT_ROUNDED, 1 / f)
SIMT_FUNCTION(exp, SIMT_ROUNDED_DOUBLE, ::exp((double)f))
SIMT_FUNCTION(exp2, SIMT_ROUNDED_DOUBLE, ::exp2((double)f))
SIMT_FUNCTION(exp10, SIMT_ROUNDED_DOUBLE, ::exp10((double)f))
SIMT_FUNCTION(log, SIMT_ROUNDED_DOUBLE, ::log((double)f))
SIMT_FUNCTION(log2, SIMT_ROUNDED_DOUBLE, ::log2((double)f))
SIMT_FUNCTION(log10, SIMT_ROUNDED_DOUBLE, ::log10((double)f))
SIMT_FUNCTION(sin, SIMT_ROUNDED_DOUBLE, ::sin((double)f))
SIMT_FUNCTION(cos, SIMT_ROUNDED_DOUBLE, ::cos((double)f))
SIMT_FUNCTION(tanh, SIMT_ROUNDED_DOUBLE, ::tanh((double)f))
SIMT_FUNCTION(tanh_approx, SIMT_ROUNDED_DOUBLE, ::tanh((double)f))
#undef SIMT_FUNCTION

#undef SIMT_PAIR_3
#undef SIMT_PAIR_2
#undef SIMT_PAIR_1
#undef SIMT_BITS
#undef SIMT_F
#undef SIMT_NAME2
#undef SIMT_NAME
#undef SIMT_JOIN
#undef SIMT_JOIN_
#undef SIMT_ROUNDED_DOUBLE
#undef SIMT_ROUNDED
#undef SIMT_FROM_TORCH
#undef SIMT_HIDE_OPERATORS2
#undef SIMT_HIDE_OPERATORS
#undef SIMT_HIDE_CONVERSIONS
#undef SIMT_TO_BITS
#undef SIMT_FROM_BITS
#undef SIMT_LEAST
#undef SIMT_DIGITS
#undef SIMT_OTHER
#undef SIMT_N2
#undef SIMT_N
#undef SIMT_RAW2
#undef SIMT_RAW
#undef SIMT_T2
#undef SIMT_T
