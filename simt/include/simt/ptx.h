// The functions to which inline PTX is rewritten (simt/frontend/ptx.py), one for each instruction: registers are passed
// and results returned by value. The file stays whole: each instruction is a few lines, and all share the definitions
// at its beginning.
#pragma once

#include <simt/atomic.h>
#include <simt/cuda_device.h>
#include <simt/fp8.h>
#include <simt/libcu_atomic.h>
#include <simt/hints.h>
#include <simt/integers.h>
#include <simt/math.h>
#include <simt/pipeline.h>
#include <simt/ptx_integers.h>
#include <simt/rounding.h>
#include <simt/warp.h>
#include <simt/wmma.h>

namespace simt {

// ---- addresses in shared memory as numbers of 32 bits ----
//
// Static arrays lie in the module's thread-local storage, dynamic shared memory in a place of the runtime's: each has a
// window of numbers, whose low bits are the address's own, so that what flips bits of an address (a swizzle) works.

inline constexpr std::uintptr_t window = std::uintptr_t(1) << 24;
static __thread char among_static_arrays;
static __thread bool has_static_numbers;  // a kernel of this module has asked for one

SIMT_INLINE std::uintptr_t window_of(const void* place) { return (std::uintptr_t)place & ~(window - 1); }

// 0 for what isn't in shared memory.
SIMT_OWN_PROBES std::size_t shared_number(const void* pointer) {
  const auto at = (std::uintptr_t)pointer, dynamic = (std::uintptr_t)dynamic_shared();
  if (at - dynamic <= dynamic_shared_size()) return at - window_of((void*)dynamic) + window;
  const std::uintptr_t from_static = at - window_of(&among_static_arrays) + 4 * window;
  if (from_static - 3 * window < 3 * window) {
    has_static_numbers = true;
    return from_static;
  }
  return at - dynamic + window < 2 * window ? at - window_of((void*)dynamic) + window : 0;
}

inline constexpr std::uintptr_t nowhere = 4096;  // where nothing lies, and a fault is an access's own

SIMT_OWN_PROBES char* shared_pointer(unsigned number) {
  if (number >= window && number < 5 * window / 2) return (char*)(window_of(dynamic_shared()) + (number - window));
  if (number >= 3 * window && number < 6 * window)
    return (char*)(window_of(&among_static_arrays) + number - 4 * window);
  return (char*)(nowhere + number % nowhere);
}

}  // namespace simt

SIMT_INLINE std::size_t __cvta_generic_to_shared(const void* pointer) { return simt::shared_number(pointer); }
SIMT_INLINE void* __cvta_shared_to_generic(std::size_t number) { return simt::shared_pointer((unsigned)number); }
SIMT_INLINE std::size_t __cvta_generic_to_global(const void* pointer) { return (std::size_t)pointer; }
SIMT_INLINE void* __cvta_global_to_generic(std::size_t address) { return (void*)address; }

namespace simt {
namespace ptx {

typedef unsigned u32;
typedef unsigned long long u64;
typedef unsigned short u16;
typedef float f32;
typedef double f64;
template <unsigned n> using constant = std::integral_constant<unsigned, n>;

// ---- registers: the C++ types that a constraint accepts and returns ----

SIMT_INLINE unsigned bits(float f) { return __float_as_uint(f); }
SIMT_INLINE float number(unsigned u) { return __uint_as_float(u); }
SIMT_INLINE unsigned long long bits64(double d) { return (unsigned long long)__double_as_longlong(d); }
SIMT_INLINE double number64(unsigned long long u) { return __longlong_as_double((long long)u); }

template <class T> inline constexpr bool whole = std::is_integral_v<T> || std::is_enum_v<T>;

template <class T> SIMT_INLINE unsigned from_r(T x) {
  static_assert(whole<T> && sizeof(T) == 4, "an operand with the constraint \"r\" is a 32-bit integer");
  return (unsigned)x;
}
template <class T> SIMT_INLINE unsigned short from_h(T x) {
  static_assert(whole<T> && sizeof(T) == 2, "an operand with the constraint \"h\" is a 16-bit integer");
  return (unsigned short)x;
}
template <class T> SIMT_INLINE unsigned long long from_l(T x) {
  static_assert((whole<T> || std::is_pointer_v<T>) && sizeof(T) == 8,
                "an operand with the constraint \"l\" is a pointer or a 64-bit integer");
  return (unsigned long long)x;
}
template <class T> SIMT_INLINE float from_f(T x) {
  static_assert(std::is_same_v<T, float>, "an operand with the constraint \"f\" is a float");
  return x;
}
template <class T> SIMT_INLINE double from_d(T x) {
  static_assert(std::is_same_v<T, double>, "an operand with the constraint \"d\" is a double");
  return x;
}

// L: the type of the variable that the register is written to, as decltype((variable)) gives it.
template <class L> using variable = std::remove_cvref_t<L>;
#define SIMT_REGISTER(letter, T)                                \
  template <class L> SIMT_INLINE variable<L> to_##letter(T x) { \
    (void)from_##letter(variable<L>{});                         \
    return (variable<L>)x;                                      \
  }
SIMT_REGISTER(r, unsigned)
SIMT_REGISTER(h, unsigned short)
SIMT_REGISTER(l, unsigned long long)
SIMT_REGISTER(f, float)
SIMT_REGISTER(d, double)
#undef SIMT_REGISTER

// ---- mma.sync: fragments as in the PTX ISA's "Matrix Fragments for mma.m16n8k…", which wmma.h's tables follow ----

namespace detail = ::nvcuda::wmma::detail;
typedef ::nvcuda::wmma::precision::tf32 tf32;
typedef __half f16;
typedef __nv_bfloat16 bf16;
typedef __nv_fp8_e4m3 e4m3;
typedef __nv_fp8_e5m2 e5m2;
typedef signed char s8;
typedef unsigned char u8;

template <int K, class T, class C, std::size_t words_a, std::size_t words_b, std::size_t words_c>
SIMT_INLINE void multiply(unsigned (&d)[words_c], const unsigned (&a)[words_a], const unsigned (&b)[words_b],
                          const unsigned (&c)[words_c], const char* what, int line) {
  typedef detail::stored<T> X;
  static_assert(sizeof a * 32 == sizeof(X) * 16 * K && sizeof b * 32 == sizeof(X) * K * 8);
  static_assert(sizeof c * 32 == sizeof(C) * 16 * 8);
  detail::multiply<16, 8, K, T>((C*)d, (const X*)a, (const X*)b, (const C*)c, false, line, what);
}

// Called, not inlined, in every build: a warp's meeting costs more than a call.
#define SIMT_MMA_FLOAT(K, T, A, B, words_a, words_b)                                                             \
  SIMT_APART inline float4 mma_m16n8k##K##_##T##_f32(SIMT_UNPACK A, SIMT_UNPACK B, float c0, float c1, float c2, \
                                                     float c3, int line = __builtin_LINE()) {                    \
    const unsigned a[] = {SIMT_UNPACK words_a}, b[] = {SIMT_UNPACK words_b};                                     \
    const unsigned c[] = {bits(c0), bits(c1), bits(c2), bits(c3)};                                               \
    unsigned d[4];                                                                                               \
    multiply<K, T, float>(d, a, b, c, "mma.sync.m16n8k" #K "." #T, line);                                        \
    return {number(d[0]), number(d[1]), number(d[2]), number(d[3])};                                             \
  }
#define SIMT_MMA_HALF(K, A, B, words_a, words_b)                                                          \
  SIMT_APART inline uint2 mma_m16n8k##K##_f16_f16(SIMT_UNPACK A, SIMT_UNPACK B, unsigned c0, unsigned c1, \
                                                  int line = __builtin_LINE()) {                          \
    const unsigned a[] = {SIMT_UNPACK words_a}, b[] = {SIMT_UNPACK words_b}, c[] = {c0, c1};              \
    unsigned d[2];                                                                                        \
    multiply<K, f16, __half>(d, a, b, c, "mma.sync.m16n8k" #K ".f16", line);                              \
    return {d[0], d[1]};                                                                                  \
  }
#define SIMT_MMA_INT(K, T, A, B, words_a, words_b)                                                                 \
  SIMT_APART inline uint4 mma_m16n8k##K##_##T(SIMT_UNPACK A, SIMT_UNPACK B, unsigned c0, unsigned c1, unsigned c2, \
                                              unsigned c3, int line = __builtin_LINE()) {                          \
    const unsigned a[] = {SIMT_UNPACK words_a}, b[] = {SIMT_UNPACK words_b}, c[] = {c0, c1, c2, c3};               \
    unsigned d[4];                                                                                                 \
    multiply<K, T, int>(d, a, b, c, "mma.sync.m16n8k" #K "." #T, line);                                            \
    return {d[0], d[1], d[2], d[3]};                                                                               \
  }
#define SIMT_UNPACK(...) __VA_ARGS__
#define SIMT_A4 (unsigned a0, unsigned a1, unsigned a2, unsigned a3)
#define SIMT_A2 (unsigned a0, unsigned a1)
#define SIMT_B2 (unsigned b0, unsigned b1)
#define SIMT_B1 (unsigned b0)
SIMT_MMA_FLOAT(4, tf32, SIMT_A2, SIMT_B1, (a0, a1), (b0))
SIMT_MMA_FLOAT(8, tf32, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_FLOAT(8, f16, SIMT_A2, SIMT_B1, (a0, a1), (b0))
SIMT_MMA_FLOAT(16, f16, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_FLOAT(8, bf16, SIMT_A2, SIMT_B1, (a0, a1), (b0))
SIMT_MMA_FLOAT(16, bf16, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_FLOAT(32, e4m3, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_FLOAT(32, e5m2, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_INT(16, s8, SIMT_A2, SIMT_B1, (a0, a1), (b0))
SIMT_MMA_INT(32, s8, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_INT(16, u8, SIMT_A2, SIMT_B1, (a0, a1), (b0))
SIMT_MMA_INT(32, u8, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
SIMT_MMA_HALF(8, SIMT_A2, SIMT_B1, (a0, a1), (b0))
SIMT_MMA_HALF(16, SIMT_A4, SIMT_B2, (a0, a1, a2, a3), (b0, b1))
#undef SIMT_B1
#undef SIMT_B2
#undef SIMT_A2
#undef SIMT_A4
#undef SIMT_UNPACK
#undef SIMT_MMA_INT
#undef SIMT_MMA_HALF
#undef SIMT_MMA_FLOAT

// ---- conversions ----

SIMT_INLINE unsigned cvt_rna_tf32(float x) { return bits(::nvcuda::wmma::__float_to_tf32(x)); }
SIMT_COUNTED unsigned cvt_rn_tf32(float x) {
  const unsigned u = bits(x);
  return x != x ? 0x7fffffffu : (u + 0xfffu + (u >> 13 & 1)) & 0xffffe000u;
}
SIMT_COUNTED unsigned cvt_rz_tf32(float x) { return x != x ? 0x7fffffffu : bits(x) & 0xffffe000u; }
SIMT_INLINE unsigned short cvt_rn_f16(float x) { return float_to_half(x); }
SIMT_INLINE unsigned short cvt_rn_bf16(float x) { return float_to_bfloat16(x); }
SIMT_INLINE unsigned short cvt_rz_f16(float x) { return narrowed((double)x, 11, -14, Round::to_zero); }
SIMT_INLINE unsigned short cvt_rz_bf16(float x) { return narrowed((double)x, 8, -126, Round::to_zero); }
SIMT_INLINE float cvt_f32_f16(unsigned short h) { return half_to_float(h); }
SIMT_INLINE float cvt_f32_bf16(unsigned short h) { return bfloat16_to_float(h); }

// The first of two operands becomes the upper half.
SIMT_INLINE unsigned packed(unsigned short low, unsigned short high) { return (unsigned)high << 16 | low; }
#define SIMT_PACKED(rounding, T)                                          \
  SIMT_INLINE unsigned cvt_##rounding##_##T##x2(float high, float low) {  \
    return packed(cvt_##rounding##_##T(low), cvt_##rounding##_##T(high)); \
  }
SIMT_PACKED(rn, f16)
SIMT_PACKED(rn, bf16)
SIMT_PACKED(rz, f16)
SIMT_PACKED(rz, bf16)
#undef SIMT_PACKED
#define SIMT_EIGHT_BITS(T, kind)                                                                                   \
  SIMT_INLINE unsigned short cvt_rn_##T##x2(float high, float low) {                                               \
    return __nv_cvt_float2_to_fp8x2({low, high}, __NV_SATFINITE, kind);                                            \
  }                                                                                                                \
  SIMT_INLINE unsigned short cvt_rn_##T##x2_f16x2(unsigned both) {                                                 \
    return __nv_cvt_halfraw2_to_fp8x2({(unsigned short)both, (unsigned short)(both >> 16)}, __NV_SATFINITE, kind); \
  }                                                                                                                \
  SIMT_INLINE unsigned cvt_rn_f16x2_##T##x2(unsigned short both) {                                                 \
    const __half2_raw halves = __nv_cvt_fp8x2_to_halfraw2(both, kind);                                             \
    return packed(halves.x, halves.y);                                                                             \
  }
SIMT_EIGHT_BITS(e4m3, __NV_E4M3)
SIMT_EIGHT_BITS(e5m2, __NV_E5M2)
#undef SIMT_EIGHT_BITS

// ---- the special-function unit: more precise here than there, but for tanh ----
//
// Its relative error of 2^-11 (PTX ISA) shows in results, so it is rounded to as many bits.

// ftz: subnormal numbers are zero.
SIMT_INLINE float flushed(float x) { return __builtin_fabsf(x) < 0x1p-126f ? __builtin_copysignf(0.0f, x) : x; }
#define SIMT_SPECIAL(name, expression)                                      \
  SIMT_COUNTED float name##_approx(float x) { return (float)(expression); } \
  SIMT_COUNTED float name##_approx_ftz(float x) {                           \
    x = flushed(x);                                                         \
    return flushed((float)(expression));                                    \
  }
SIMT_SPECIAL(ex2, ::exp2f(x))
SIMT_SPECIAL(lg2, ::log2f(x))
SIMT_SPECIAL(rcp, 1 / x)
SIMT_SPECIAL(rsqrt, 1 / __builtin_sqrt((double)x))
SIMT_SPECIAL(sqrt, __builtin_sqrtf(x))
SIMT_SPECIAL(sin, ::sinf(x))
SIMT_SPECIAL(cos, ::cosf(x))
#undef SIMT_SPECIAL
SIMT_COUNTED float tanh_approx(float x) {
  const unsigned u = bits(::tanhf(x));
  return number(x != x ? 0x7fffffffu : (u + 0xfffu + (u >> 13 & 1)) & 0xffffe000u);
}

// ---- memory ----

SIMT_INLINE u64 cvta_to_shared(u64 address) { return shared_number((const void*)address); }
SIMT_INLINE u64 cvta_shared(u64 number) { return (u64)shared_pointer((unsigned)number); }
SIMT_INLINE u64 cvta_global(u64 address) { return address; }
SIMT_INLINE void prefetch(u64) {}

struct alignas(16) u64x2 {
  u64 x, y;
};
typedef uint2 u32x2;
typedef uint4 u32x4;
typedef float2 f32x2;
typedef float4 f32x4;
typedef double2 f64x2;

#define SIMT_LOAD(T)                                               \
  SIMT_INLINE T ld_##T(u64 address) { return *(const T*)address; } \
  SIMT_INLINE T lds_##T(u32 address) { return *(const T*)shared_pointer(address); }
#define SIMT_STORE(T, parameters, value)                                     \
  SIMT_INLINE void st_##T(u64 address, parameters) { *(T*)address = value; } \
  SIMT_INLINE void sts_##T(u32 address, parameters) { *(T*)shared_pointer(address) = value; }
#define SIMT_AND ,
#define SIMT_MEMORY(T) SIMT_LOAD(T) SIMT_STORE(T, T x, x)
#define SIMT_MEMORY_2(T) SIMT_LOAD(T##x2) SIMT_STORE(T##x2, T x SIMT_AND T y, simt::whole<T##x2>({x SIMT_AND y}))
#define SIMT_MEMORY_4(T)                                        \
  SIMT_LOAD(T##x4)                                              \
  SIMT_STORE(T##x4, T x SIMT_AND T y SIMT_AND T z SIMT_AND T w, \
             simt::whole<T##x4>({x SIMT_AND y SIMT_AND z SIMT_AND w}))
SIMT_MEMORY(u16)
SIMT_MEMORY(u32)
SIMT_MEMORY(f32)
SIMT_MEMORY(u64)
SIMT_MEMORY(f64)
SIMT_MEMORY_2(u32)
SIMT_MEMORY_2(f32)
SIMT_MEMORY_2(u64)
SIMT_MEMORY_2(f64)
SIMT_MEMORY_4(u32)
SIMT_MEMORY_4(f32)
#undef SIMT_MEMORY_4
#undef SIMT_MEMORY_2
#undef SIMT_MEMORY
#undef SIMT_AND
#undef SIMT_STORE
#undef SIMT_LOAD

// ---- cp.async: as __pipeline_memcpy_async, src-size being what is read of the bytes ----

template <unsigned bytes>
SIMT_INLINE void cp_async(u32 to, u64 from, constant<bytes>, int line = __builtin_LINE()) {
  char* const target = shared_pointer(to);
  check_pipeline_copy("cp.async", target, (const void*)from, bytes, 0, line);
  begin_copy(target, (const void*)from, bytes);
}
template <unsigned bytes>
SIMT_INLINE void cp_async(u32 to, u64 from, constant<bytes> all, u32 read, int line = __builtin_LINE()) {
  if (read == bytes) return cp_async(to, from, all, line);
  char* const target = shared_pointer(to);
  check_pipeline_copy("cp.async", target, (const void*)from, bytes, bytes - read, line);
  CopyBits bits = read & 8 ? *(const u64*)from : 0;
  if (read & 4) bits |= (CopyBits) * (const u32*)(from + (read & 8)) << 8 * (read & 8);
  for (u32 i = read & ~3u; i < read; ++i) bits |= (CopyBits)((const unsigned char*)from)[i] << 8 * i;
  copy_later(target, bytes, bits);
}
SIMT_INLINE void cp_async_commit_group() { commit_copies(); }
SIMT_INLINE void cp_async_wait_group(u32 prior) { end_copies_prior(prior); }
SIMT_INLINE void cp_async_wait_all() {
  commit_copies();
  end_copies_prior(0);
}

// ---- ldmatrix: eight rows of 16 bytes a matrix, their addresses from eight lanes ----

struct Row {
  CopyBits bits;
  u32 d[4];
  bool done;
};

SIMT_APART inline void check_row(const void* row, unsigned rows, int line) {
  const bool missing = (std::uintptr_t)row < 2 * nowhere;
  if (lane() >= rows || (!missing && (std::uintptr_t)row % 16 == 0)) return;
  const char* const rule = missing ? "addresses in shared memory, from __cvta_generic_to_shared()."
                                   : "rows at addresses that are multiples of 16 bytes; this one is %u past one.";
  char form[160], text[240];
  snprintf(form, sizeof form, "ldmatrix in line %%d needs %s", rule);
  snprintf(text, sizeof text, form, line, (unsigned)((std::uintptr_t)row % 16));
  misused(missing ? "illegal_address" : "misaligned", text, line);
}

// The lane's own row: what it reads of memory. A counted build knows by the operation that other lanes read none.
template <unsigned rows>
SIMT_FRAGMENT CopyBits read_row(const char* row) {
  SIMT_FRAGMENT_ACCESS(row, 16, rows == 8 ? Atomic::first_8 : rows == 16 ? Atomic::first_16 : Atomic::load);
  return lane() < rows ? *(const CopyBits*)row : 0;
}

SIMT_INLINE u32 half_of(const Exchange& met, unsigned row, unsigned column) {
  return (u32)(((const Row*)met.value[row])->bits >> 16 * column) & 0xffffu;
}

// The first lane that resumes works for all, while the others' rows still are what they were on arrival.
template <unsigned matrices, bool turned>
SIMT_APART uint4 spread(CopyBits bits, int line) {
  Row own = {bits, {}, false};
  constexpr const char* what = matrices == 1 ? "ldmatrix.x1" : matrices == 2 ? "ldmatrix.x2" : "ldmatrix.x4";
  const Exchange met = exchange(0xffffffffu, (std::uint64_t)&own, what, line);
  if (!own.done) {
    detail::check_lanes(met, what, line);
    for (unsigned lane = 0; lane < 32; ++lane) {
      Row& part = *(Row*)met.value[lane];
      for (unsigned m = 0; m < matrices; ++m) {
        const unsigned row = lane / 4, column = lane % 4 * 2;
        part.d[m] = turned ? half_of(met, m * 8 + column, row) | half_of(met, m * 8 + column + 1, row) << 16
                           : half_of(met, m * 8 + row, column) | half_of(met, m * 8 + row, column + 1) << 16;
      }
      part.done = true;
    }
  }
  return {own.d[0], own.d[1], own.d[2], own.d[3]};
}

template <unsigned matrices, bool turned>
SIMT_INLINE uint4 ldmatrix(u32 address, int line = __builtin_LINE()) {
  const char* const row = shared_pointer(address);
  check_row(row, 8 * matrices, line);
  return spread<matrices, turned>(read_row<8 * matrices>(row), line);
}
#define SIMT_LDMATRIX(name, T, matrices, turned, value)                     \
  SIMT_INLINE T ldmatrix_##name(u32 address, int line = __builtin_LINE()) { \
    return ldmatrix<matrices, turned>(address, line) value;                 \
  }
SIMT_LDMATRIX(x1, u32, 1, false, .x)
SIMT_LDMATRIX(x1_trans, u32, 1, true, .x)
SIMT_LDMATRIX(x2, uint4, 2, false, )
SIMT_LDMATRIX(x2_trans, uint4, 2, true, )
SIMT_LDMATRIX(x4, uint4, 4, false, )
SIMT_LDMATRIX(x4_trans, uint4, 4, true, )
#undef SIMT_LDMATRIX

// ---- atomic operations: red is atom without its result ----

#define SIMT_ATOM(name, function, T, P)                                        \
  SIMT_INLINE T atom_##name(u64 a, T x) { return (T)::function((P*)a, (P)x); } \
  SIMT_INLINE T atoms_##name(u32 a, T x) { return (T)::function((P*)shared_pointer(a), (P)x); }
#define SIMT_ATOM_CAS(name, T)                                                                \
  SIMT_INLINE T atom_##name(u64 a, T compare, T x) { return ::atomicCAS((T*)a, compare, x); } \
  SIMT_INLINE T atoms_##name(u32 a, T compare, T x) { return ::atomicCAS((T*)shared_pointer(a), compare, x); }
SIMT_ATOM(add_f32, atomicAdd, f32, float)
SIMT_ATOM(add_f64, atomicAdd, f64, double)
SIMT_ATOM(add_u32, atomicAdd, u32, unsigned)
SIMT_ATOM(add_u64, atomicAdd, u64, unsigned long long)
SIMT_ATOM(min_u32, atomicMin, u32, unsigned)
SIMT_ATOM(max_u32, atomicMax, u32, unsigned)
SIMT_ATOM(min_s32, atomicMin, u32, int)
SIMT_ATOM(max_s32, atomicMax, u32, int)
SIMT_ATOM(and_u32, atomicAnd, u32, unsigned)
SIMT_ATOM(or_u32, atomicOr, u32, unsigned)
SIMT_ATOM(xor_u32, atomicXor, u32, unsigned)
SIMT_ATOM(exch_u32, atomicExch, u32, unsigned)
SIMT_ATOM(exch_u64, atomicExch, u64, unsigned long long)
SIMT_ATOM_CAS(cas_u32, u32)
SIMT_ATOM_CAS(cas_u64, u64)
#undef SIMT_ATOM_CAS
#undef SIMT_ATOM
SIMT_INLINE void red_add_v2_f32(u64 a, f32 x, f32 y) { ::atomicAdd((float2*)a, float2{x, y}); }
SIMT_INLINE void red_add_v4_f32(u64 a, f32 x, f32 y, f32 z, f32 w) { ::atomicAdd((float4*)a, float4{x, y, z, w}); }

// With a memory order: as cuda::atomic_ref's.
template <class T> using Ordered = ::cuda::detail::Operation<T, ::cuda::thread_scope_device>;
// A thread that reads the same value again waits for others: let them run first.
SIMT_APART inline void again(u64 address, u64 value, int line) {
  static __thread struct {
    u64 address, value;
    unsigned thread;
  } last;
  if (last.address == address && last.value == value && last.thread == linear_thread()) let_others_run(line);
  last.address = address;
  last.value = value;
  last.thread = linear_thread();
}
#define SIMT_ORDERED(T)                                                                                   \
  SIMT_INLINE T ld_relaxed_##T(u64 a, int line = __builtin_LINE()) {                                      \
    const T x = Ordered<T>::load((T*)a, std::memory_order_relaxed);                                       \
    again(a, (u64)x, line);                                                                               \
    return x;                                                                                             \
  }                                                                                                       \
  SIMT_INLINE T ld_acquire_##T(u64 a, int line = __builtin_LINE()) {                                      \
    const T x = Ordered<T>::load((T*)a, std::memory_order_acquire);                                       \
    again(a, (u64)x, line);                                                                               \
    return x;                                                                                             \
  }                                                                                                       \
  SIMT_INLINE T ld_volatile_##T(u64 a, int line = __builtin_LINE()) {                                     \
    const T x = *(const volatile T*)a;                                                                    \
    again(a, (u64)x, line);                                                                               \
    return x;                                                                                             \
  }                                                                                                       \
  SIMT_INLINE void st_relaxed_##T(u64 a, T x) { Ordered<T>::store((T*)a, x, std::memory_order_relaxed); } \
  SIMT_INLINE void st_release_##T(u64 a, T x) { Ordered<T>::store((T*)a, x, std::memory_order_release); } \
  SIMT_INLINE void st_volatile_##T(u64 a, T x) { *(volatile T*)a = x; }
SIMT_ORDERED(u32)
SIMT_ORDERED(u64)
SIMT_ORDERED(f32)
#undef SIMT_ORDERED
SIMT_INLINE u32 atom_ordered_add_u32(u64 a, u32 x) { return Ordered<u32>::add((u32*)a, x, std::memory_order_acq_rel); }

// ---- threads together ----

SIMT_INLINE void bar_sync(constant<0>, int line = __builtin_LINE()) { simt::barrier(line); }
SIMT_INLINE void bar_warp_sync(u32 mask, int line = __builtin_LINE()) { ::__syncwarp(mask, line); }
SIMT_INLINE void fence_proxy() {}  // every access goes the same way
SIMT_INLINE void fence_cta() { ::__threadfence_block(); }
SIMT_INLINE void fence_gpu() { ::__threadfence(); }
SIMT_INLINE void fence_sys() { ::__threadfence_system(); }

struct Shuffled {
  u32 x;
  bool y;  // the source lane is inside the segment
};
// PTX ISA, "shfl.sync": bits 8 to 12 of `clamp` say which lanes make a segment, the lower ones where it ends.
#define SIMT_SHFL(mode, source, inside)                                                                    \
  SIMT_INLINE Shuffled shfl_##mode(u32 value, u32 by, u32 clamp, u32 mask, int line = __builtin_LINE()) {  \
    const u32 self = lane(), segment = clamp >> 8 & 31, last = (self & segment) | (clamp & 31 & ~segment); \
    const u32 from = source;                                                                               \
    const bool in = inside;                                                                                \
    return {(u32)shuffled(mask, value, in ? from & 31 : self, 4, "shfl.sync", line), in};                  \
  }
SIMT_SHFL(up, self - (by & 31), (int)from >= (int)last)
SIMT_SHFL(down, self + (by & 31), from <= last)
SIMT_SHFL(bfly, self ^ (by & 31), from <= last)
SIMT_SHFL(idx, (self & segment) | (by & 31 & ~segment), from <= last)
#undef SIMT_SHFL

SIMT_INLINE u32 vote_ballot(bool p, u32 mask, int line = __builtin_LINE()) { return ::__ballot_sync(mask, p, line); }
SIMT_INLINE bool vote_any(bool p, u32 mask, int line = __builtin_LINE()) { return ::__any_sync(mask, p, line); }
SIMT_INLINE bool vote_all(bool p, u32 mask, int line = __builtin_LINE()) { return ::__all_sync(mask, p, line); }
#define SIMT_REDUX(name, T) SIMT_INLINE u32 redux_##name(u32 x, u32 mask, int line = __builtin_LINE())
SIMT_REDUX(add_u32, unsigned) { return ::__reduce_add_sync(mask, x, line); }
SIMT_REDUX(min_u32, unsigned) { return ::__reduce_min_sync(mask, x, line); }
SIMT_REDUX(max_u32, unsigned) { return ::__reduce_max_sync(mask, x, line); }
SIMT_REDUX(min_s32, int) { return (u32)::__reduce_min_sync(mask, (int)x, line); }
SIMT_REDUX(max_s32, int) { return (u32)::__reduce_max_sync(mask, (int)x, line); }
SIMT_REDUX(and_u32, unsigned) { return ::__reduce_and_sync(mask, x, line); }
SIMT_REDUX(or_u32, unsigned) { return ::__reduce_or_sync(mask, x, line); }
SIMT_REDUX(xor_u32, unsigned) { return ::__reduce_xor_sync(mask, x, line); }
#undef SIMT_REDUX

// ---- arithmetic ----

SIMT_INLINE f32 add_f32(f32 x, f32 y) { return x + y; }
SIMT_INLINE f32 sub_f32(f32 x, f32 y) { return x - y; }
SIMT_INLINE f32 mul_f32(f32 x, f32 y) { return x * y; }
SIMT_INLINE f32 fma_f32(f32 x, f32 y, f32 z) { return ::fmaf(x, y, z); }
SIMT_INLINE f32 min_f32(f32 x, f32 y) { return ::fminf(x, y); }
SIMT_INLINE f32 max_f32(f32 x, f32 y) { return ::fmaxf(x, y); }
SIMT_COUNTED f32 min_nan_f32(f32 x, f32 y) { return x != x || y != y ? number(0x7fffffffu) : ::fminf(x, y); }
SIMT_COUNTED f32 max_nan_f32(f32 x, f32 y) { return x != x || y != y ? number(0x7fffffffu) : ::fmaxf(x, y); }
SIMT_INLINE f32 neg_f32(f32 x) { return -x; }
SIMT_INLINE f32 abs_f32(f32 x) { return __builtin_fabsf(x); }
SIMT_COUNTED f32 add_f32_ftz(f32 x, f32 y) { return flushed(flushed(x) + flushed(y)); }
SIMT_COUNTED f32 sub_f32_ftz(f32 x, f32 y) { return flushed(flushed(x) - flushed(y)); }
SIMT_COUNTED f32 mul_f32_ftz(f32 x, f32 y) { return flushed(flushed(x) * flushed(y)); }
SIMT_COUNTED f32 fma_f32_ftz(f32 x, f32 y, f32 z) { return flushed(::fmaf(flushed(x), flushed(y), flushed(z))); }

// Two halves in a register.
SIMT_INLINE u32 add_f16x2(u32 x, u32 y) { return add_half2(x, y); }
SIMT_INLINE u32 sub_f16x2(u32 x, u32 y) { return sub_half2(x, y); }
SIMT_INLINE u32 mul_f16x2(u32 x, u32 y) { return mul_half2(x, y); }
SIMT_INLINE u32 fma_f16x2(u32 x, u32 y, u32 z) { return fma_half2(x, y, z); }

SIMT_INLINE u32 add_u32(u32 x, u32 y) { return x + y; }
SIMT_INLINE u32 sub_u32(u32 x, u32 y) { return x - y; }
SIMT_INLINE u32 mul_u32(u32 x, u32 y) { return x * y; }
SIMT_INLINE u32 mad_u32(u32 x, u32 y, u32 z) { return x * y + z; }
SIMT_INLINE u64 wide_u32(u32 x, u32 y) { return (u64)x * y; }
SIMT_INLINE u64 wide_s32(u32 x, u32 y) { return (u64)((long long)(int)x * (int)y); }
SIMT_INLINE u64 add_u64(u64 x, u64 y) { return x + y; }
SIMT_INLINE u64 sub_u64(u64 x, u64 y) { return x - y; }
SIMT_INLINE u32 and_b32(u32 x, u32 y) { return x & y; }
SIMT_INLINE u32 or_b32(u32 x, u32 y) { return x | y; }
SIMT_INLINE u32 xor_b32(u32 x, u32 y) { return x ^ y; }
SIMT_INLINE u32 not_b32(u32 x) { return ~x; }
SIMT_INLINE u32 shl_b32(u32 x, u32 n) { return n < 32 ? x << n : 0; }
SIMT_INLINE u32 shr_u32(u32 x, u32 n) { return n < 32 ? x >> n : 0; }
SIMT_INLINE u32 shr_s32(u32 x, u32 n) { return (u32)((int)x >> (n < 32 ? n : 31)); }
SIMT_INLINE u32 selp_b32(u32 x, u32 y, bool p) { return p ? x : y; }
SIMT_INLINE f32 selp_f32(f32 x, f32 y, bool p) { return p ? x : y; }
SIMT_INLINE u32 cvt_u32_u64(u64 x) { return (u32)x; }
SIMT_INLINE u64 cvt_u64_u32(u32 x) { return x; }
SIMT_INLINE u64 cvt_s64_s32(u32 x) { return (u64)(long long)(int)x; }
SIMT_INLINE f32 cvt_rn_f32_s32(u32 x) { return (float)(int)x; }
SIMT_INLINE f32 cvt_rn_f32_u32(u32 x) { return (float)x; }
SIMT_INLINE u32 cvt_rzi_s32_f32(f32 x) { return (u32)::__float2int_rz(x); }
SIMT_INLINE u32 cvt_rni_s32_f32(f32 x) { return (u32)::__float2int_rn(x); }

#define SIMT_SETP(name, op)                                                     \
  SIMT_INLINE bool setp_##name##_u32(u32 x, u32 y) { return x op y; }           \
  SIMT_INLINE bool setp_##name##_s32(u32 x, u32 y) { return (int)x op(int) y; } \
  SIMT_INLINE bool setp_##name##_f32(f32 x, f32 y) { return x op y; }
SIMT_SETP(eq, ==)
SIMT_SETP(ne, !=)
SIMT_SETP(lt, <)
SIMT_SETP(le, <=)
SIMT_SETP(gt, >)
SIMT_SETP(ge, >=)
#undef SIMT_SETP

SIMT_INLINE u64 packed64(u32 low, u32 high) { return (u64)high << 32 | low; }
SIMT_INLINE uint2 unpacked64(u64 x) { return {(u32)x, (u32)(x >> 32)}; }
struct Halves {
  u16 x, y;
};
SIMT_INLINE Halves unpacked(u32 x) { return {(u16)x, (u16)(x >> 16)}; }

// Bit 7 of `table` is what becomes of three ones, bit 0 of three zeros.
template <unsigned table>
SIMT_COUNTED u32 lop3(u32 a, u32 b, u32 c, constant<table>) {
  u32 all = 0;
  for (unsigned i = 0; i < 8; ++i)
    if (table >> i & 1) all |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
  return all;
}

// ---- special registers ----

SIMT_INLINE u32 linear_block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
inline u32 multiprocessors() {
  int n = 1;
  ::cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);
  return (u32)n;
}
SIMT_APART inline u32 smid() { return linear_block() % multiprocessors(); }  // as blocks begin, in turn

}  // namespace ptx
}  // namespace simt
