// wgmma.mma_async: the product of 64 rows with a matrix in shared memory. Each warp of the warpgroup computes its own 16
// rows, so that one operation is a meeting of one warp. Shared memory is read, and the sums are written, at the
// instruction: wgmma.wait_group has nothing left to wait for.
#pragma once

#include <simt/ptx.h>

namespace simt {
namespace ptx {

// ---- matrices in shared memory: PTX ISA, "Matrix descriptor" and "Shared memory matrix layout" ----

struct Matrix {
  const char* start;
  unsigned leading, stride;  // in bytes
  unsigned width;  // bytes of a swizzled row; 16 without a swizzle
};

// A descriptor has 18 bits of an address, and dynamic shared memory has fewer bytes than that: the bits are looked for
// there, then near the static arrays.
SIMT_APART inline const char* find_matrix(unsigned low, const char* what, int line) {
  constexpr std::uintptr_t range = std::uintptr_t(1) << 18;
  const auto dynamic = (std::uintptr_t)dynamic_shared(), array = (std::uintptr_t)&among_static_arrays;
  const std::uintptr_t in_dynamic = dynamic + (low - dynamic) % range;
  const std::uintptr_t above = array + (low - array) % range;
  const bool is_dynamic = in_dynamic - dynamic < dynamic_shared_size();
  const std::uintptr_t in_static = in_shared((const void*)above) ? above : above - range;
  const bool is_static = in_shared((const void*)in_static);
  if (is_dynamic && is_static && has_static_numbers)
    detail::against_rules("illegal_address",
                          "the start address of each matrix to differ from those of static arrays in its 18 bits. Put "
                          "all arrays that it uses into dynamic shared memory.",
                          what, line);
  if (!is_dynamic && !is_static)
    detail::against_rules("illegal_address",
                          "matrices that begin in shared memory. This one lies past the end, or bits 0 to 13 of its "
                          "descriptor are not bits 4 to 17 of an address from __cvta_generic_to_shared().",
                          what, line);
  return (const char*)(is_dynamic ? in_dynamic : in_static);
}

SIMT_INLINE unsigned field(u64 descriptor, int bit) { return (unsigned)(descriptor >> bit & 0x3fff) << 4; }

SIMT_APART inline Matrix decode(u64 descriptor, const char* what, int line) {
  const unsigned start = field(descriptor, 0);
  const auto mode = (unsigned)(descriptor >> 62), base = (unsigned)(descriptor >> 49 & 7);
  const unsigned width = mode == 0 ? 16 : 256 >> mode;
  if (base)
    detail::against_rules("misaligned", "a base offset of 0 in each descriptor (bits 49 to 51); it is %u.", what, line,
                          base);
  if (width > 16 && start % (8 * width) >= width)
    detail::against_rules("misaligned",
                          "a swizzled matrix to begin in the first row of its pattern, which repeats every %u bytes; "
                          "it begins in row %u.",
                          what, line, 8 * width, start % (8 * width) / width);
  return {find_matrix(start, what, line), field(descriptor, 16), field(descriptor, 32), width};
}

// Eight neighbours: along k of row (or column) `at`, or along the rows for the k that is `at`. part: which eight.
SIMT_INLINE const char* chunk_of(const Matrix& m, bool turned, unsigned at, unsigned part) {
  const unsigned row = at % 8 * m.width, of_width = m.width / 16;
  unsigned offset;
  if (m.width == 16)
    offset = turned ? row + at / 8 * m.leading + part * m.stride : row + at / 8 * m.stride + part * m.leading;
  else
    offset = row + at / 8 * m.stride + (turned ? part % of_width * 16 + part / of_width * m.leading : part * 16);
  const auto linear = (std::uintptr_t)m.start + offset;
  return (const char*)(linear ^ (linear >> 7 & (of_width - 1)) << 4);
}

// Where chunk `c` is: eight lanes read eight rows of 16 bytes.
struct Chunk {
  unsigned at, part;
};
SIMT_INLINE Chunk chunk_number(unsigned c, bool turned) {
  return turned ? Chunk{c % 16, c / 16} : Chunk{c / 16 * 8 + c % 8, c / 8 % 2};
}

// This lane's share of 16 k's of `rows` rows from `first` on. is_counted: whether a counted build counts the accesses;
// the four warps of a warpgroup get the second matrix by one access.
SIMT_FRAGMENT void read_chunks(CopyBits* own, u64 descriptor, bool turned, unsigned first, unsigned rows,
                               bool is_counted, const char* what, int line) {
  const Matrix m = decode(descriptor, what, line);
  for (unsigned c = lane(); c < 2 * rows; c += 32) {
    const Chunk chunk = chunk_number(c, turned);
    const char* const from =
        turned ? chunk_of(m, true, chunk.at, first / 8 + chunk.part) : chunk_of(m, false, first + chunk.at, chunk.part);
    if (is_counted) SIMT_FRAGMENT_ACCESS(from, 16, Atomic::load);
    own[c / 32] = *(const CopyBits*)from;
  }
}

// ---- the product ----

struct Registers {
  u32 word[4];
};
struct Descriptor {
  u64 bits;
};

// What one lane brings. a_descriptor: 0 for rows in registers.
struct GroupPart {
  const u32* a;
  const CopyBits *a_chunks, *b_chunks;
  u64 a_descriptor, b_descriptor;
  float* sums;
  bool done;
};

static __thread float group_sums[128];  // of the lane whose wgmma ended last

// The value of a sum before the product, which reads it only if it adds to it.
SIMT_INLINE float sum_before(bool is_read, const float& sum) {
#ifdef SIMT_CHECK
  return is_read ? sum : copied(sum);
#else
  (void)is_read;
  return sum;
#endif
}

// Four sums from the i-th on: as many as a function returns in registers.
SIMT_OWN_PROBES float4 four_group_sums(unsigned i) {
  return {group_sums[i], group_sums[i + 1], group_sums[i + 2], group_sums[i + 3]};
}

SIMT_INLINE GroupPart& group_part(const Exchange& met, unsigned lane) { return *(GroupPart*)met.value[lane]; }

SIMT_APART inline void check_group(const Exchange& met, const GroupPart& own, const char* what, int line) {
  detail::check_lanes(met, what, line);
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z, group = linear_thread() / 128;
  if (threads < 128 * (group + 1))
    detail::against_rules("warp_divergence",
                          "a warpgroup, four warps of which the first one's number is a multiple of 4; the block has "
                          "only %u threads from thread %u on.",
                          what, line, threads - 128 * group, 128 * group);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const GroupPart& other = group_part(met, lane);
    if (other.a_descriptor != own.a_descriptor || other.b_descriptor != own.b_descriptor)
      detail::against_rules("warp_divergence",
                            "the same descriptors in all lanes of a warp, but those of lanes %u and %u differ.", what,
                            line, simt::lane(), lane);
  }
}

// Puts a lane's chunks into `rows` rows of a matrix, of which those from `first` on are wanted.
template <class T>
SIMT_INLINE void put_chunk(double (*matrix)[16], unsigned first, unsigned rows, CopyBits bits, Chunk chunk, bool turned,
                           bool negated) {
  T eight[8];
  __builtin_memcpy((void*)eight, &bits, sizeof eight);
  for (unsigned i = 0; i < 8; ++i) {
    const double x = negated ? -(double)detail::factor<T>(eight[i]) : (double)detail::factor<T>(eight[i]);
    const unsigned row = turned ? chunk.part * 8 + i : chunk.at, k = turned ? chunk.at : chunk.part * 8 + i;
    if (row - first < rows) matrix[row - first][k] = x;
  }
}

// The first matrix's rows of this warp.
template <class T>
SIMT_INLINE void put_rows(double (&rows)[16][16], const Exchange& met, bool turned, bool negated) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const GroupPart& part = group_part(met, lane);
    if (part.a_chunks) {
      put_chunk<T>(rows, 0, 16, part.a_chunks[0], chunk_number(lane, turned), turned, negated);
      continue;
    }
    T of_lane[8];
    __builtin_memcpy((void*)of_lane, part.a, sizeof of_lane);
    for (int i = 0; i < 8; ++i) {
      const detail::Place p = detail::of_first((int)lane, i, 2, 16);
      const double x = detail::factor<T>(of_lane[i]);
      rows[p.row][p.column] = negated ? -x : x;
    }
  }
}

// Eight columns of sums, from `first` on: a fiber's stack is too small for all.
template <class T>
SIMT_INLINE void add_columns(const double (&rows)[16][16], const Exchange& met, unsigned first, bool turned,
                             bool negated, bool adds) {
  double columns[8][16], factors[16][8], sum[16][8];
  for (unsigned i = 0; i < 16; ++i) {  // the chunks that have these columns
    const unsigned c = first / 8 * 16 + i;
    put_chunk<T>(columns, first, 8, group_part(met, c % 32).b_chunks[c / 32], chunk_number(c, turned), turned, negated);
  }
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned n = 0; n < 8; ++n) factors[k][n] = columns[n][k];
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const detail::Place p = detail::of_result((int)lane, (int)i, false);
      sum[p.row][p.column] = adds ? (double)group_part(met, lane).sums[first / 2 + i] : 0;
    }
  detail::add_products<16, 8, 16, T, float>(sum, rows, factors);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const detail::Place p = detail::of_result((int)lane, (int)i, false);
      group_part(met, lane).sums[first / 2 + i] = detail::rounded<float>(sum[p.row][p.column], false);
    }
}

// The first lane that resumes works for all.
template <class T>
SIMT_APART void multiply_rows(GroupPart& own, unsigned columns, bool a_turned, bool b_turned, bool a_negated,
                              bool b_negated, bool adds, const char* what, int line) {
  const Exchange met = exchange(0xffffffffu, (std::uint64_t)&own, what, line);
  if (own.done) return;
  check_group(met, own, what, line);
  double rows[16][16];
  put_rows<T>(rows, met, a_turned, a_negated);
  for (unsigned first = 0; first < columns; first += 8) add_columns<T>(rows, met, first, b_turned, b_negated, adds);
  for (unsigned lane = 0; lane < 32; ++lane) group_part(met, lane).done = true;
}

template <unsigned N, class T, class... D>
SIMT_APART void multiply_group(Registers a, const CopyBits* a_chunks, const CopyBits* b_chunks, u64 a_descriptor,
                               u64 b_descriptor, bool a_turned, bool b_turned, bool a_negated, bool b_negated,
                               bool adds, const char* what, int line, D... d) {
  static_assert(N % 8 == 0 && N <= 256 && sizeof...(D) == N / 2, "a lane has N / 2 sums of wgmma.m64nNk16");
  float sums[] = {d...};
  GroupPart own = {a.word, a_chunks, b_chunks, a_descriptor, b_descriptor, sums, false};
  multiply_rows<T>(own, N, a_turned, b_turned, a_negated, b_negated, adds, what, line);
  for (unsigned i = 0; i < N / 2; ++i) group_sums[i] = sums[i];
}

template <unsigned sign_a, unsigned sign_b, unsigned turn_a, unsigned turn_b>
constexpr bool has_immediates() {
  static_assert((sign_a == 1 || sign_a + 1 == 0) && (sign_b == 1 || sign_b + 1 == 0), "imm-scale is 1 or -1");
  static_assert(turn_a <= 1 && turn_b <= 1, "imm-trans is 0 or 1");
  return true;
}

template <unsigned N, class T, unsigned sign_a, unsigned sign_b, unsigned turn_a, unsigned turn_b, class... D>
SIMT_INLINE void wgmma(Descriptor a, u64 b, bool adds, constant<sign_a>, constant<sign_b>, constant<turn_a>,
                       constant<turn_b>, const char* what, int line, D... d) {
  static_assert(has_immediates<sign_a, sign_b, turn_a, turn_b>());
  const unsigned warp = linear_thread() / 32 % 4;
  CopyBits a_chunks[1], b_chunks[(2 * N + 31) / 32];
  read_chunks(a_chunks, a.bits, turn_a, 16 * warp, 16, true, what, line);
  read_chunks(b_chunks, b, turn_b, 0, N, warp == 0, what, line);
  multiply_group<N, T>({}, a_chunks, b_chunks, a.bits, b, turn_a, turn_b, sign_a != 1, sign_b != 1, adds, what, line,
                       d...);
}
template <unsigned N, class T, unsigned sign_a, unsigned sign_b, unsigned turn_b, class... D>
SIMT_INLINE void wgmma(Registers a, u64 b, bool adds, constant<sign_a>, constant<sign_b>, constant<turn_b>,
                       const char* what, int line, D... d) {
  static_assert(has_immediates<sign_a, sign_b, 0, turn_b>());
  CopyBits b_chunks[(2 * N + 31) / 32];
  read_chunks(b_chunks, b, turn_b, 0, N, linear_thread() / 32 % 4 == 0, what, line);
  multiply_group<N, T>(a, nullptr, b_chunks, 0, b, false, turn_b, sign_a != 1, sign_b != 1, adds, what, line, d...);
}

// All is done at the instruction.
SIMT_INLINE void wgmma_fence() {}
SIMT_INLINE void wgmma_commit_group() {}
SIMT_INLINE void wgmma_wait_group(u32) {}

}  // namespace ptx
}  // namespace simt
