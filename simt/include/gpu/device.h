// Included before device code by NVRTC, which has no C++ standard library: the parts of it that kernels use. nvcc takes
// them from the host's library; what both compute is the same.
#pragma once

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;  // as on the host, so that names are mangled alike
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32767 - 1)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define SIZE_MAX UINT64_MAX
#define CHAR_BIT 8
#define SCHAR_MIN INT8_MIN
#define SCHAR_MAX INT8_MAX
#define UCHAR_MAX UINT8_MAX
#define CHAR_MIN INT8_MIN
#define CHAR_MAX INT8_MAX
#define SHRT_MIN INT16_MIN
#define SHRT_MAX INT16_MAX
#define USHRT_MAX UINT16_MAX
#define INT_MIN INT32_MIN
#define INT_MAX INT32_MAX
#define UINT_MAX UINT32_MAX
#define LONG_MIN INT64_MIN
#define LONG_MAX INT64_MAX
#define ULONG_MAX UINT64_MAX
#define LLONG_MIN (-9223372036854775807LL - 1)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_MIN_EXP (-125)
#define FLT_MAX_EXP 128
#define FLT_EPSILON 1.19209289550781250000000000000000000e-7F
#define FLT_MIN 1.17549435082228750796873653722224568e-38F
#define FLT_MAX 3.40282346638528859811704183484516925e+38F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_MIN_EXP (-1021)
#define DBL_MAX_EXP 1024
#define DBL_EPSILON 2.22044604925031308084726333618164062e-16
#define DBL_MIN 2.22507385850720138309023271733240406e-308
#define DBL_MAX 1.79769313486231570814527423731704357e+308
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fffffff)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000LL)
#endif
#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
typedef decltype(sizeof(0)) size_t;
typedef decltype((char*)0 - (char*)0) ptrdiff_t;
typedef decltype(nullptr) nullptr_t;

// ---- <type_traits> ----

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const noexcept { return v; }
  constexpr T operator()() const noexcept { return v; }
};
template <bool b>
using bool_constant = integral_constant<bool, b>;
typedef integral_constant<bool, true> true_type;
typedef integral_constant<bool, false> false_type;

template <class A, class B>
struct is_same : false_type {};
template <class A>
struct is_same<A, A> : true_type {};
template <class A, class B>
inline constexpr bool is_same_v = is_same<A, B>::value;

template <bool yes, class A, class B>
struct conditional {
  typedef A type;
};
template <class A, class B>
struct conditional<false, A, B> {
  typedef B type;
};
template <bool yes, class A, class B>
using conditional_t = typename conditional<yes, A, B>::type;

template <bool yes, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  typedef T type;
};
template <bool yes, class T = void>
using enable_if_t = typename enable_if<yes, T>::type;
template <class...>
using void_t = void;

template <class T>
struct remove_reference {
  typedef T type;
};
template <class T>
struct remove_reference<T&> {
  typedef T type;
};
template <class T>
struct remove_reference<T&&> {
  typedef T type;
};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
struct remove_const {
  typedef T type;
};
template <class T>
struct remove_const<const T> {
  typedef T type;
};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
struct remove_volatile {
  typedef T type;
};
template <class T>
struct remove_volatile<volatile T> {
  typedef T type;
};
template <class T>
using remove_volatile_t = typename remove_volatile<T>::type;
template <class T>
struct remove_cv {
  typedef remove_const_t<remove_volatile_t<T>> type;
};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
struct remove_pointer {
  typedef T type;
};
template <class T>
struct remove_pointer<T*> {
  typedef T type;
};
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;
template <class T>
struct decay {
  typedef remove_cv_t<remove_reference_t<T>> type;
};
template <class T>
using decay_t = typename decay<T>::type;

template <class T>
struct is_floating_point : bool_constant<is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, double>> {};
template <class T>
inline constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T, class... O>
inline constexpr bool simt_is_one = (is_same_v<remove_cv_t<T>, O> || ...);
template <class T>
struct is_integral : bool_constant<simt_is_one<T, bool, char, signed char, unsigned char, short, unsigned short, int,
                                               unsigned int, long, unsigned long, long long, unsigned long long>> {};
template <class T>
inline constexpr bool is_integral_v = is_integral<T>::value;
template <class T>
struct is_arithmetic : bool_constant<is_integral_v<T> || is_floating_point_v<T>> {};
template <class T>
inline constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T, bool = is_arithmetic_v<T>>
struct is_signed : bool_constant<(T(-1) < T(0))> {};
template <class T>
struct is_signed<T, false> : false_type {};
template <class T>
inline constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
struct is_unsigned : bool_constant<is_integral_v<T> && !is_signed_v<T>> {};
template <class T>
inline constexpr bool is_unsigned_v = is_unsigned<T>::value;
template <class T>
struct is_pointer : false_type {};
template <class T>
struct is_pointer<T*> : true_type {};
template <class T>
inline constexpr bool is_pointer_v = is_pointer<T>::value;
template <class T>
struct is_const : false_type {};
template <class T>
struct is_const<const T> : true_type {};
template <class T>
inline constexpr bool is_const_v = is_const<T>::value;
template <class T>
struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T>
inline constexpr bool is_void_v = is_void<T>::value;
template <class T>
remove_reference_t<T>&& declval() noexcept;

// ---- <utility>, <algorithm> ----

// NVRTC itself has std::move and std::forward.
template <class T>
constexpr void swap(T& a, T& b) {
  T kept = move(a);
  a = move(b);
  b = move(kept);
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T, class C>
constexpr const T& min(const T& a, const T& b, C less) {
  return less(b, a) ? b : a;
}
template <class T, class C>
constexpr const T& max(const T& a, const T& b, C less) {
  return less(a, b) ? b : a;
}
template <class T>
constexpr const T& clamp(const T& v, const T& low, const T& high) {
  return v < low ? low : high < v ? high : v;
}
template <class A, class B>
struct pair {
  A first;
  B second;
};
template <class T, size_t n>
struct array {
  T simt_items[n];
  constexpr T& operator[](size_t i) { return simt_items[i]; }
  constexpr const T& operator[](size_t i) const { return simt_items[i]; }
  constexpr T* data() { return simt_items; }
  constexpr const T* data() const { return simt_items; }
  constexpr size_t size() const { return n; }
  constexpr T* begin() { return simt_items; }
  constexpr T* end() { return simt_items + n; }
  constexpr const T* begin() const { return simt_items; }
  constexpr const T* end() const { return simt_items + n; }
};

// ---- <limits> ----

template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = false;
};
#define SIMT_INTEGER(T, lowest_value, highest_value)                                                \
  template <>                                                                                       \
  struct numeric_limits<T> {                                                                        \
    static constexpr bool is_specialized = true, is_integer = true;                                 \
    static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0), has_infinity = false; \
    static constexpr int digits = 8 * sizeof(T) - is_signed;                                        \
    static constexpr T min() noexcept { return lowest_value; }                                      \
    static constexpr T lowest() noexcept { return lowest_value; }                                   \
    static constexpr T max() noexcept { return highest_value; }                                     \
  };
SIMT_INTEGER(char, CHAR_MIN, CHAR_MAX)
SIMT_INTEGER(signed char, SCHAR_MIN, SCHAR_MAX)
SIMT_INTEGER(unsigned char, 0, UCHAR_MAX)
SIMT_INTEGER(short, SHRT_MIN, SHRT_MAX)
SIMT_INTEGER(unsigned short, 0, USHRT_MAX)
SIMT_INTEGER(int, INT_MIN, INT_MAX)
SIMT_INTEGER(unsigned int, 0, UINT_MAX)
SIMT_INTEGER(long, LONG_MIN, LONG_MAX)
SIMT_INTEGER(unsigned long, 0, ULONG_MAX)
SIMT_INTEGER(long long, LLONG_MIN, LLONG_MAX)
SIMT_INTEGER(unsigned long long, 0, ULLONG_MAX)
#undef SIMT_INTEGER
#define SIMT_REAL(T, prefix, infinite, nan)                            \
  template <>                                                          \
  struct numeric_limits<T> {                                           \
    static constexpr bool is_specialized = true, is_integer = false;   \
    static constexpr bool is_signed = true, has_infinity = true;       \
    static constexpr int digits = prefix##_MANT_DIG;                   \
    static constexpr T min() noexcept { return prefix##_MIN; }         \
    static constexpr T lowest() noexcept { return -prefix##_MAX; }     \
    static constexpr T max() noexcept { return prefix##_MAX; }         \
    static constexpr T epsilon() noexcept { return prefix##_EPSILON; } \
    static constexpr T infinity() noexcept { return infinite; }        \
    static constexpr T quiet_NaN() noexcept { return nan; }            \
  };
SIMT_REAL(float, FLT, HUGE_VALF, NAN)
SIMT_REAL(double, DBL, HUGE_VAL, __builtin_bit_cast(double, 0x7ff8000000000000LL))
#undef SIMT_REAL

// ---- <cmath>: nvcc has these functions in namespace std as well ----

#define SIMT_UNARY(name)                                              \
  __device__ inline float name(float x) { return ::name##f(x); }      \
  __device__ inline double name(double x) { return ::name(x); }       \
  template <class T>                                                  \
  __device__ inline enable_if_t<is_integral_v<T>, double> name(T x) { \
    return ::name(static_cast<double>(x));                            \
  }
SIMT_UNARY(acos)
SIMT_UNARY(acosh)
SIMT_UNARY(asin)
SIMT_UNARY(asinh)
SIMT_UNARY(atan)
SIMT_UNARY(atanh)
SIMT_UNARY(cbrt)
SIMT_UNARY(ceil)
SIMT_UNARY(cos)
SIMT_UNARY(cosh)
SIMT_UNARY(erf)
SIMT_UNARY(erfc)
SIMT_UNARY(exp)
SIMT_UNARY(exp2)
SIMT_UNARY(expm1)
SIMT_UNARY(fabs)
SIMT_UNARY(floor)
SIMT_UNARY(lgamma)
SIMT_UNARY(log)
SIMT_UNARY(log10)
SIMT_UNARY(log1p)
SIMT_UNARY(log2)
SIMT_UNARY(nearbyint)
SIMT_UNARY(rint)
SIMT_UNARY(round)
SIMT_UNARY(sin)
SIMT_UNARY(sinh)
SIMT_UNARY(sqrt)
SIMT_UNARY(tan)
SIMT_UNARY(tanh)
SIMT_UNARY(tgamma)
SIMT_UNARY(trunc)
#undef SIMT_UNARY
#define SIMT_BINARY(name)                                                    \
  __device__ inline float name(float x, float y) { return ::name##f(x, y); } \
  __device__ inline double name(double x, double y) { return ::name(x, y); }
SIMT_BINARY(atan2)
SIMT_BINARY(copysign)
SIMT_BINARY(fdim)
SIMT_BINARY(fmax)
SIMT_BINARY(fmin)
SIMT_BINARY(fmod)
SIMT_BINARY(hypot)
SIMT_BINARY(remainder)
#undef SIMT_BINARY
__device__ inline float pow(float x, float y) { return ::powf(x, y); }
__device__ inline double pow(double x, double y) { return ::pow(x, y); }
template <class A, class B>
__device__ inline enable_if_t<!(is_same_v<A, B> && is_floating_point_v<A>), double> pow(A x, B y) {
  return ::pow(static_cast<double>(x), static_cast<double>(y));
}
__device__ inline float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
__device__ inline double fma(double x, double y, double z) { return ::fma(x, y, z); }
__device__ inline float abs(float x) { return ::fabsf(x); }
__device__ inline double abs(double x) { return ::fabs(x); }
__device__ inline int abs(int x) { return ::abs(x); }
__device__ inline long abs(long x) { return x < 0 ? -x : x; }
__device__ inline long long abs(long long x) { return x < 0 ? -x : x; }
__device__ inline bool isnan(float x) { return ::isnan(x); }
__device__ inline bool isnan(double x) { return ::isnan(x); }
__device__ inline bool isinf(float x) { return ::isinf(x); }
__device__ inline bool isinf(double x) { return ::isinf(x); }
__device__ inline bool isfinite(float x) { return ::isfinite(x); }
__device__ inline bool isfinite(double x) { return ::isfinite(x); }
__device__ inline bool signbit(float x) { return ::signbit(x); }
__device__ inline bool signbit(double x) { return ::signbit(x); }

}  // namespace std
