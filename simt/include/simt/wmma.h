// Tensor-core fragments (nvcuda::wmma): the 32 lanes of a warp hold the tiles of a matrix product, each lane its share.
// The file stays whole: layouts, loads, stores and the product use the same tables of each lane's elements.
#pragma once

#include <stdio.h>

#include <simt/bfloat16.h>
#include <simt/half.h>
#include <simt/probe.h>
#include <simt/runtime.h>

namespace nvcuda {
namespace wmma {

struct row_major {};
struct col_major {};
struct matrix_a {};
struct matrix_b {};
struct accumulator {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
}  // namespace precision

// The nearest float with 10 bits after the point, halves away from zero. PTX: cvt.rna.tf32.f32
SIMT_COUNTED float __float_to_tf32(float f) {
  const unsigned bits = __float_as_uint(f);
  if (f - f == 0) return __uint_as_float((bits + 0x1000u) & 0xffffe000u);
  return __uint_as_float((bits & 0xffffe000u) | (f != f && !(bits & 0x007fe000u) ? 0x00400000u : 0));
}

namespace detail {

template <class A, class B> inline constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;

template <class T> struct Stored {
  typedef T type;
};
template <> struct Stored<precision::tf32> {
  typedef float type;
};
template <class T> using stored = typename Stored<T>::type;  // what a fragment's x[] holds

template <class T> inline constexpr bool sixteen = same<T, __half> || same<T, __nv_bfloat16>;
template <class T> inline constexpr bool eight = same<T, signed char> || same<T, unsigned char>;
template <class T> inline constexpr bool eight_float = sizeof(stored<T>) == 1 && !eight<T>;

// The shapes that CUDA has for operands of type T, and for accumulators.
template <int M, int N, int K, class T>
inline constexpr bool multiplies =
    sixteen<T> || eight<T>     ? K == 16 && ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32))
    : same<T, precision::tf32> ? M == 16 && N == 16 && K == 8
                               : same<T, double> && M == 8 && N == 8 && K == 4;
template <int M, int N, int K, class T>
inline constexpr bool accumulates =
    same<T, __half>  ? multiplies<M, N, K, __half>
    : same<T, float> ? multiplies<M, N, K, __half> || multiplies<M, N, K, precision::tf32>
    : same<T, int>   ? multiplies<M, N, K, signed char>
                     : same<T, double> && multiplies<M, N, K, double>;

// Elements of a fragment that one lane holds.
template <class Use, int M, int N, int K>
inline constexpr int share = (same<Use, matrix_a>   ? M * K
                              : same<Use, matrix_b> ? K * N
                                                    : M * N) /
                             32;

// ---- which elements ----

struct Place {
  int row, column;
};

// As in the mma instructions of compute capability 8.0 and later (PTX ISA, "Matrix Fragments for mma"): four lanes
// share a row of the first operand, each with `wide` neighbours in k, then 8 rows further down, then further along k.
SIMT_INLINE constexpr Place of_first(int lane, int i, int wide, int k) {
  const int parts = k / (4 * wide);
  const int down = i / wide % 2, part = i / (2 * wide) % parts, tile = i / (2 * wide * parts);
  return {tile * 16 + down * 8 + lane / 4, (part * 4 + lane % 4) * wide + i % wide};
}
SIMT_INLINE constexpr Place of_second(int lane, int i, int wide, int k) {
  const int parts = k / (4 * wide);
  const int part = i / wide % parts, tile = i / (wide * parts);
  return {(part * 4 + lane % 4) * wide + i % wide, tile * 8 + lane / 4};
}
SIMT_INLINE constexpr Place of_result(int lane, int i, bool tall) {
  const int down = i / 2 % 2, tile = i / 4;
  return {(tall ? tile * 16 : 0) + down * 8 + lane / 4, (tall ? 0 : tile * 8) + lane % 4 * 2 + i % 2};
}
SIMT_INLINE constexpr Place turned(Place p) { return {p.column, p.row}; }

// How a fragment lies over lanes and in memory.
template <class Use, int M, int N, int K, class T>
struct Tile {
  static constexpr int held = share<Use, M, N, K>;
  static constexpr bool flipped = M == 8 && N == 32;  // computed as its transpose
  // Elements of x[] that are neighbours, and whether they are so along a row.
  static constexpr int wide = same<Use, accumulator> ? 2 : sixteen<T> ? 2 : sizeof(stored<T>) == 1 ? 4 : 1;
  static constexpr bool along_rows = same<Use, accumulator> ? !flipped : same<Use, matrix_a>;
  static_assert(held % wide == 0);

  static SIMT_INLINE constexpr Place place(int lane, int i) {
    if (same<Use, accumulator>) return flipped ? turned(of_result(lane, i, true)) : of_result(lane, i, M == 32);
    if (same<Use, matrix_a>) return M == 8 ? turned(of_second(lane, i, wide, K)) : of_first(lane, i, wide, K);
    return flipped ? turned(of_first(lane, i, wide, K)) : of_second(lane, i, wide, K);
  }
  // 16-bit elements always move two by two. In the layout that is not theirs, each 8 × 8 tile is turned over in memory,
  // and turned back between the lanes.
  static SIMT_INLINE constexpr Place turned_place(int lane, int i) {
    const Place p = place(lane, i);
    return {p.row / 8 * 8 + p.column % 8, p.column / 8 * 8 + p.row % 8};
  }
};

// All places of a fragment, as small numbers.
template <class Use, int M, int N, int K, class T>
struct Places {
  struct Small {
    unsigned char row, column;
  } of[32][share<Use, M, N, K>];
  constexpr Places() : of{} {
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < share<Use, M, N, K>; ++i) {
        const Place p = Tile<Use, M, N, K, T>::place(lane, i);
        of[lane][i] = {(unsigned char)p.row, (unsigned char)p.column};
      }
  }
};
template <class Use, int M, int N, int K, class T>
inline constexpr Places<Use, M, N, K, T> places;

template <class Use, int M, int N, int K, class T>
inline constexpr bool exists = same<Use, accumulator> ? accumulates<M, N, K, T> : multiplies<M, N, K, T>;

}  // namespace detail

// Use: matrix_a (M × K), matrix_b (K × N) or accumulator (M × N).
// x[]: as many elements as CUDA's headers say; for half operands that is 16, of which the later ones repeat the lane's
// share.
template <class Use, int M, int N, int K, class T, class Layout = void>
class fragment {
  static_assert(
      detail::exists<Use, M, N, K, T>,
      "wmma has no fragment of this shape and type. Use 16x16x16, 32x8x16 or 8x32x16 for __half, "
      "__nv_bfloat16 and 8-bit integers (accumulated in float, __half or int), 16x16x8 for precision::tf32, or "
      "8x8x4 for double");
  static_assert(detail::same<Use, accumulator> ? detail::same<Layout, void>
                                               : detail::same<Layout, row_major> || detail::same<Layout, col_major>,
                "a matrix_a or matrix_b fragment has a layout, row_major or col_major; an accumulator has none");

 public:
  typedef T element_type;
  typedef detail::stored<T> storage_element_type;
  enum {
    num_elements = detail::same<T, __half> && !detail::same<Use, accumulator> ? 16 : detail::share<Use, M, N, K>,
    num_storage_elements = num_elements
  };
  alignas(16) storage_element_type x[num_elements];
};

namespace detail {

// ---- operations of the whole warp: not inlined, because they read other lanes' variables ----

// A lane's arguments of a load or a store.
struct Part {
  const void* pointer;
  unsigned stride, element;  // in elements; bytes of one
  bool by_rows;
  unsigned short* pieces;  // 16-bit elements as they lie in memory, where they are turned over
  unsigned short* elements;  // likewise the lane's x[]
  bool done;
};

SIMT_INLINE Part& part_of(const simt::Exchange& met, unsigned lane) { return *(Part*)met.value[lane]; }

[[noreturn]] inline __attribute__((noinline, cold)) void against_rules(const char* reason, const char* rule,
                                                                       const char* what, int line, unsigned a = 0,
                                                                       unsigned b = 0) {
  char sentence[200], text[320];
  snprintf(sentence, sizeof sentence, rule, a, b);
  snprintf(text, sizeof text, "%s in line %d needs %s", what, line, sentence);
  simt::misused(reason, text, line);
}

SIMT_INLINE void check_lanes(const simt::Exchange& met, const char* what, int line) {
  if (met.present == 0xffffffffu) return;
  const unsigned lane = (unsigned)__builtin_ctz(~met.present), threads = blockDim.x * blockDim.y * blockDim.z;
  if (simt::linear_thread() / 32 * 32 + lane < threads)
    against_rules("warp_divergence", "all 32 lanes of the warp, but lane %u has returned.", what, line, lane);
  against_rules("warp_divergence",
                "all 32 lanes of the warp, but lane %u does not exist: the block has only %u threads.", what, line,
                lane, threads);
}

// CUDA C++ Programming Guide, "Warp matrix functions", on load_matrix_sync.
SIMT_INLINE void check_access(const simt::Exchange& met, const char* what, int line) {
  check_lanes(met, what, line);
  const Part& own = part_of(met, simt::lane());
  for (unsigned lane = 0; lane < 32; ++lane) {
    const Part& other = part_of(met, lane);
    if (other.pointer != own.pointer || other.stride != own.stride || other.by_rows != own.by_rows)
      against_rules(
          "warp_divergence",
          "the same pointer, leading dimension and layout in all lanes of a warp, but those of lanes %u and %u differ.",
          what, line, simt::lane(), lane);
  }
  if ((std::uintptr_t)own.pointer % 32)
    against_rules("misaligned", "a pointer that is a multiple of 32 bytes; this one is %u bytes past one.", what, line,
                  (unsigned)((std::uintptr_t)own.pointer % 32));
  if (own.stride * own.element % 16)
    against_rules("misaligned", "a leading dimension that is a multiple of %u elements (16 bytes); it is %u.", what,
                  line, 16 / own.element, own.stride);
}

// Every 8 × 8 tile turned over between the lanes: two elements a lane and tile.
template <int held>
SIMT_INLINE void turn(const simt::Exchange& met, bool from_memory) {
  for (unsigned lane = 0; lane < 32; ++lane)
    for (int i = 0; i < held; ++i) {
      const unsigned row = lane / 4, column = lane % 4 * 2 + i % 2;
      const unsigned other = column * 4 + row / 2, at = i / 2 * 2 + row % 2;
      if (from_memory)
        part_of(met, lane).elements[i] = part_of(met, other).pieces[at];
      else
        part_of(met, lane).pieces[i] = part_of(met, other).elements[at];
    }
}

// The first lane that resumes works for all, while the others' fragments still are what they were on arrival.
SIMT_APART inline void meet(const void* pointer, unsigned stride, unsigned element, bool by_rows, const char* what,
                            int line) {
  Part part = {pointer, stride, element, by_rows, nullptr, nullptr, false};
  const simt::Exchange met = simt::exchange(0xffffffffu, (std::uint64_t)&part, what, line);
  if (!part.done) {
    check_access(met, what, line);
    for (unsigned lane = 0; lane < 32; ++lane) part_of(met, lane).done = true;
  }
}
template <int held>
SIMT_APART void meet_and_turn(const void* pointer, unsigned stride, bool by_rows, unsigned short* pieces,
                              unsigned short* elements, bool from_memory, const char* what, int line) {
  Part part = {pointer, stride, 2, by_rows, pieces, elements, false};
  const simt::Exchange met = simt::exchange(0xffffffffu, (std::uint64_t)&part, what, line);
  if (!part.done) {
    check_access(met, what, line);
    turn<held>(met, from_memory);
    for (unsigned lane = 0; lane < 32; ++lane) part_of(met, lane).done = true;
  }
}

// ---- memory ----

template <int bytes> struct Bits;
template <> struct Bits<1> {
  typedef unsigned char type;
};
template <> struct Bits<2> {
  typedef unsigned short type;
};
template <> struct Bits<4> {
  typedef unsigned type;
};
template <> struct Bits<8> {
  typedef unsigned long type;
};
template <> struct Bits<16> {
  typedef unsigned __int128 type;
};

// A fragment is in registers, and a lane computes the addresses of its part once: neither is counted, but the accesses
// to memory are. (The checks see everything.)
#ifdef SIMT_COUNT
#define SIMT_FRAGMENT SIMT_OWN_PROBES
#define SIMT_FRAGMENT_ACCESS(address, bytes, kind) SIMT_PROBE_ATOMIC(address, bytes, kind)
#else
#define SIMT_FRAGMENT SIMT_INLINE
#define SIMT_FRAGMENT_ACCESS(address, bytes, kind) ((void)0)
#endif

// Each lane's own accesses, as compute capability 9.0 makes them: neighbours in one access where they are neighbours in
// memory too. to_memory: from x[]; else into it.
template <class Tile, int step, bool over, bool to_memory, class X, class P>
SIMT_FRAGMENT void move(X* x, P* matrix, unsigned stride, bool by_rows) {
  typedef typename Bits<step * sizeof(X)>::type Piece;
  const int lane = (int)simt::lane();
  for (int i = 0; i < Tile::held; i += step) {
    const Place p = over ? Tile::turned_place(lane, i) : Tile::place(lane, i);
    P* const at = matrix + (by_rows ? (std::size_t)p.row * stride + p.column : (std::size_t)p.column * stride + p.row);
    SIMT_FRAGMENT_ACCESS(at, sizeof(Piece), to_memory ? simt::Atomic::store : simt::Atomic::load);
    if constexpr (to_memory)
      *(Piece*)at = *(const Piece*)(x + i);
    else
      *(Piece*)(x + i) = *(const Piece*)at;
  }
}

template <int held, class F> SIMT_FRAGMENT void repeat(F& f) {
  for (int i = held; i < F::num_elements; ++i) f.x[i] = f.x[i % held];
}

template <class Tile, class F, class S>
SIMT_INLINE void load(F& f, const S* matrix, unsigned stride, bool by_rows, int line) {
  constexpr const char* what = "wmma::load_matrix_sync()";
  if (by_rows == Tile::along_rows) {
    meet(matrix, stride, sizeof(S), by_rows, what, line);
    move<Tile, Tile::wide, false, false>(f.x, matrix, stride, by_rows);
  } else if constexpr (sizeof(S) == 2) {
    alignas(16) unsigned short pieces[Tile::held];
    meet(matrix, stride, sizeof(S), by_rows, what, line);
    move<Tile, 2, true, false>((S*)pieces, matrix, stride, by_rows);
    meet_and_turn<Tile::held>(matrix, stride, by_rows, pieces, (unsigned short*)f.x, true, what, line);
  } else {
    meet(matrix, stride, sizeof(S), by_rows, what, line);
    move<Tile, 1, false, false>(f.x, matrix, stride, by_rows);
  }
  repeat<Tile::held>(f);
}

template <class Tile, class F, class S>
SIMT_INLINE void store(S* matrix, F& f, unsigned stride, bool by_rows, int line) {
  constexpr const char* what = "wmma::store_matrix_sync()";
  if (by_rows == Tile::along_rows) {
    meet(matrix, stride, sizeof(S), by_rows, what, line);
    move<Tile, Tile::wide, false, true>(f.x, matrix, stride, by_rows);
  } else if constexpr (sizeof(S) == 2) {
    alignas(16) unsigned short pieces[Tile::held];
    meet_and_turn<Tile::held>(matrix, stride, by_rows, pieces, (unsigned short*)f.x, false, what, line);
    move<Tile, 2, true, true>((S*)pieces, matrix, stride, by_rows);
  } else {
    meet(matrix, stride, sizeof(S), by_rows, what, line);
    move<Tile, 1, false, true>(f.x, matrix, stride, by_rows);
  }
}

// ---- the product ----
//
// NVIDIA documents that products are exact and sums at least as precise as the accumulator. What follows is how an H200
// does it, found by comparing bits: of 16-bit operands all 16 products of an element and the accumulator, of tf32 four
// products at a time, are cut to multiples of 2^(e - 25), where 2^e is the largest term by its factors' exponents
// alone; the sum of these is exact and is then cut to float, or rounded to half. In double it is a chain of fused
// operations. 8-bit floats are converted to half: first the two lower ones of each register, then the two upper ones,
// 16 products each; their sum, which starts from zero, is then added to the accumulator as floats are.

template <class T> SIMT_INLINE double factor(const stored<T>& x) {
  if constexpr (same<T, precision::tf32>)
    return __uint_as_float(__float_as_uint(x) & 0xffffe000u);  // the other bits are ignored
  else if constexpr (same<T, __half>)
    return __half2float(x);
  else if constexpr (same<T, __nv_bfloat16>)
    return __bfloat162float(x);
  else if constexpr (eight_float<T>)
    return (float)x;
  else
    return x;
}

inline constexpr int no_exponent = -4000, not_finite = 20000;  // of zero; of infinity and NaN
SIMT_INLINE int exponent_of(double x) {
  const int e = (int)(__double_as_longlong(x) >> 52 & 0x7ff);
  return e == 0 ? no_exponent : e == 0x7ff ? not_finite : e - 1023;
}
SIMT_INLINE double power_of_two(int e) { return __longlong_as_double((long long)(1023 + e) << 52); }
SIMT_INLINE float cut_to_float(double x) {
  const double size = __builtin_fabs(x);
  const double cut = size < 0x1p-126 ? (double)(long long)(size * 0x1p149) * 0x1p-149
                                     : __longlong_as_double(__double_as_longlong(size) & ~((1ll << 29) - 1));
  return (float)__builtin_copysign(cut, x);
}

// One row of sums: sum[n] += Σ a[k] · b[k][n] for `step` k's.
template <int N, int step, class D>
SIMT_INLINE void add_row(double (&sum)[N], const double* a, const int* a_exponent, const double (*b)[N],
                         const int (*b_exponent)[N]) {
  int most[N];
  double scale[N], total[N];
  for (int n = 0; n < N; ++n) most[n] = exponent_of(sum[n]);
  for (int k = 0; k < step; ++k)
    for (int n = 0; n < N; ++n) {
      const int e = a_exponent[k] + b_exponent[k][n];
      most[n] = e > most[n] ? e : most[n];
    }
  for (int n = 0; n < N; ++n) {
    scale[n] = most[n] > -900 && most[n] < 900 ? power_of_two(25 - most[n]) : 0;
    total[n] = (double)(int)(sum[n] * scale[n]);
  }
  for (int k = 0; k < step; ++k)
    for (int n = 0; n < N; ++n) total[n] += (double)(int)(a[k] * b[k][n] * scale[n]);
  for (int n = 0; n < N; ++n) {
    double result = sum[n];
    if (scale[n] != 0)
      result = total[n] * power_of_two(most[n] - 25);
    else if (most[n] > 900)
      for (int k = 0; k < step; ++k) result += a[k] * b[k][n];  // infinity or NaN
    sum[n] = same<D, float> && scale[n] != 0 ? cut_to_float(result) : result;
  }
}

template <int M, int N, int K, class T, class D>
SIMT_INLINE void add_products(double (&sum)[M][N], const double (&a)[M][K], const double (&b)[K][N]) {
  if constexpr (same<T, double>) {
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) sum[m][n] = __builtin_fma(a[m][k], b[k][n], sum[m][n]);
  } else if constexpr (eight<T>) {  // exact: at most 2^31 + 16 · 2^16
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) sum[m][n] += a[m][k] * b[k][n];
  } else {
    constexpr int step = same<T, precision::tf32> ? 4 : K < 16 ? K : 16;
    int a_exponent[M][K], b_exponent[K][N];
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k) a_exponent[m][k] = exponent_of(a[m][k]);
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n) b_exponent[k][n] = exponent_of(b[k][n]);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; k += step) add_row<N, step, D>(sum[m], a[m] + k, a_exponent[m] + k, b + k, b_exponent + k);
  }
}

// Where the k-th factor of an element is in the order in which products are added up.
template <class T> SIMT_INLINE constexpr int turn_of(int k) {
  return eight_float<T> ? k % 4 / 2 * 16 + k / 4 * 2 + k % 2 : k;
}

template <class D> SIMT_INLINE D rounded(double sum, bool saturate) {
  if constexpr (same<D, int>) {
    if (saturate) return sum > 0x7fffffff ? 0x7fffffff : sum < -0x80000000ll ? -0x7fffffff - 1 : (int)sum;
    return (int)(unsigned)(long long)sum;
  } else if constexpr (same<D, float>) {
    return sum != sum ? __uint_as_float(0x7fffffffu) : (float)sum;
  } else if constexpr (same<D, __half>) {
    return __double2half(sum);
  } else {
    return sum;
  }
}

template <class D, class A, class B, class C>
struct Product {
  D* d;
  const A* a;
  const B* b;
  const C* c;
  bool done;
};

template <int M, int N, int K, class T, class D, class A, class B, class C>
SIMT_APART void multiply(D* d, const A* a_of, const B* b_of, const C* c_of, bool saturate, int line, const char* what) {
  Product<D, A, B, C> own = {d, a_of, b_of, c_of, false};
  const simt::Exchange met = simt::exchange(0xffffffffu, (std::uint64_t)&own, what, line);
  if (own.done) return;
  check_lanes(met, what, line);
  double a[M][K], b[K][N], sum[M][N];
  for (int lane = 0; lane < 32; ++lane) {
    const auto& part = *(const Product<D, A, B, C>*)met.value[lane];
    for (int i = 0; i < share<matrix_a, M, N, K>; ++i) {
      const auto p = places<matrix_a, M, N, K, T>.of[lane][i];
      a[p.row][turn_of<T>(p.column)] = factor<T>(part.a[i]);
    }
    for (int i = 0; i < share<matrix_b, M, N, K>; ++i) {
      const auto p = places<matrix_b, M, N, K, T>.of[lane][i];
      b[turn_of<T>(p.row)][p.column] = factor<T>(part.b[i]);
    }
    for (int i = 0; i < share<accumulator, M, N, K>; ++i) {
      const auto p = places<accumulator, M, N, K, C>.of[lane][i];
      if constexpr (same<C, __half>)
        sum[p.row][p.column] = __half2float(part.c[i]);
      else
        sum[p.row][p.column] = part.c[i];
    }
  }
  if constexpr (eight_float<T>) {
    double products[M][N] = {};
    add_products<M, N, K, T, D>(products, a, b);
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) sum[m][n] = (float)sum[m][n] + (float)products[m][n];
  } else {
    add_products<M, N, K, T, D>(sum, a, b);
  }
  for (int lane = 0; lane < 32; ++lane) {
    auto& part = *(Product<D, A, B, C>*)met.value[lane];
    for (int i = 0; i < share<accumulator, M, N, K>; ++i) {
      const auto p = places<accumulator, M, N, K, D>.of[lane][i];
      part.d[i] = rounded<D>(sum[p.row][p.column], saturate);
    }
    part.done = true;
  }
}

// Which accumulators go with which operands.
template <class T, class C>
inline constexpr bool fits = same<T, __half>                                      ? same<C, float> || same<C, __half>
                             : same<T, __nv_bfloat16> || same<T, precision::tf32> ? same<C, float>
                             : eight<T>                                           ? same<C, int>
                                                                                  : same<C, T>;

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout>
SIMT_FRAGMENT void fill_fragment(fragment<Use, M, N, K, T, Layout>& f, const detail::stored<T>& value) {
  for (auto& x : f.x) x = value;
}

template <class Use, int M, int N, int K, class T, class Layout>
SIMT_INLINE void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const detail::stored<T>* matrix,
                                  unsigned stride, int line = __builtin_LINE()) {
  static_assert(!detail::same<Use, accumulator>,
                "load_matrix_sync of an accumulator takes a layout: mem_row_major or mem_col_major");
  detail::load<detail::Tile<Use, M, N, K, T>>(f, matrix, stride, detail::same<Layout, row_major>, line);
}
template <int M, int N, int K, class T>
SIMT_INLINE void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* matrix, unsigned stride,
                                  layout_t layout, int line = __builtin_LINE()) {
  detail::load<detail::Tile<accumulator, M, N, K, T>>(f, matrix, stride, layout == mem_row_major, line);
}
template <int M, int N, int K, class T>
SIMT_INLINE void store_matrix_sync(T* matrix, const fragment<accumulator, M, N, K, T>& f, unsigned stride,
                                   layout_t layout, int line = __builtin_LINE()) {
  detail::store<detail::Tile<accumulator, M, N, K, T>>(matrix, f, stride, layout == mem_row_major, line);
}

// d = a · b + c; d may be c. saturate: of integers, stop at the largest and smallest int.
template <int M, int N, int K, class T, class D, class C, class LayoutA, class LayoutB>
SIMT_INLINE void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
                          const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c,
                          bool saturate = false, int line = __builtin_LINE()) {
  static_assert(
      detail::fits<T, C> && detail::fits<T, D>,
      "half is accumulated in float or half, bfloat16 and tf32 in float, 8-bit integers in int, double in double");
  detail::multiply<M, N, K, T>(d.x, a.x, b.x, c.x, saturate, line, "wmma::mma_sync()");
}

}  // namespace wmma
}  // namespace nvcuda
