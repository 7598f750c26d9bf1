// cooperative_groups::memcpy_async, which a source must include to have: each thread copies its share; all of it is
// there after wait().
#pragma once

#include <simt/async_copy.h>
#include <simt/cooperative_groups.h>
#include <simt/libcu_sizes.h>

namespace cooperative_groups {

namespace detail {

// Where the types promise 4, 8 or 16 bytes, pieces of that size are copied; else the largest pieces for which source
// and target lie alike, and single bytes before and after. (CUDA then takes addresses that differ by 2 to be even.)
template <std::size_t promised, class Group>
SIMT_INLINE void copy_together(const Group& group, void* target, const void* source, std::size_t bytes, int line) {
  const std::size_t rank = group.thread_rank(), count = group.num_threads();
  if constexpr (promised >= 4) {
    cuda::detail::check_aligned(target, source, bytes, promised, line);
    simt::begin_copy_of(promised, target, source, bytes, rank, count);
  } else {
    const std::size_t apart = ((std::size_t)target ^ (std::size_t)source) % 16;
    std::size_t piece = apart ? apart & -apart : 16;
    if (bytes < piece) piece = promised;
    if (piece == 2) cuda::detail::check_aligned(target, source, bytes, 2, line);
    const std::size_t head = piece > 2 ? -(std::size_t)source % piece : 0, body = (bytes - head) / piece * piece;
    simt::begin_copy_of(1, target, source, head, rank, count);
    simt::begin_copy_of(piece, (char*)target + head, (const char*)source + head, body, rank, count);
    simt::begin_copy_of(1, (char*)target + head + body, (const char*)source + head + body, bytes - head - body, rank,
                        count);
  }
  simt::commit_copies();
}

}  // namespace detail

// bytes: a number, or a cuda::aligned_size_t.
template <class Group, class T, class Size>
SIMT_INLINE void memcpy_async(const Group& group, T* target, const T* source, const Size& bytes,
                              int line = __builtin_LINE()) {
  detail::copy_together<cuda::detail::promised<T, Size>>(group, target, source, bytes, line);
}
// As many elements as both have.
template <class Group, class T, class Room, class Count>
SIMT_INLINE void memcpy_async(const Group& group, T* target, const Room& target_count, const T* source,
                              const Count& source_count, int line = __builtin_LINE()) {
  const std::size_t count =
      (std::size_t)target_count < (std::size_t)source_count ? (std::size_t)target_count : (std::size_t)source_count;
  detail::copy_together<cuda::detail::promised<T, Room>>(group, target, source, sizeof(T) * count, line);
}

template <class Group>
SIMT_INLINE void wait(const Group& group, int line = __builtin_LINE()) {
  simt::end_copies_prior(0);
  group.sync(line);
}
// All but the newest `Stages` copies of the group.
template <unsigned Stages, class Group>
SIMT_INLINE void wait_prior(const Group& group, int line = __builtin_LINE()) {
  simt::end_copies_prior(Stages);
  group.sync(line);
}

}  // namespace cooperative_groups
