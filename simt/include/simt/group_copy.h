// cooperative_groups::memcpy_async, which a source must include to have: done at once, each thread its share; what
// others copied is there after wait().
#pragma once

#include <simt/cooperative_groups.h>

namespace cooperative_groups {

template <class Group>
void memcpy_async(const Group& group, void* target, const void* source, std::size_t bytes) {
  const std::size_t piece = ((std::uintptr_t)target | (std::uintptr_t)source | bytes) % 4 ? 1 : 4;
  const std::size_t stride = piece * group.num_threads();
  for (std::size_t at = piece * group.thread_rank(); at < bytes; at += stride)
    __builtin_memcpy((char*)target + at, (const char*)source + at, piece);
}
template <class Group, class T>
void memcpy_async(const Group& group, T* target, std::size_t target_count, const T* source, std::size_t source_count) {
  memcpy_async(group, (void*)target, (const void*)source, sizeof(T) * (target_count < source_count ? target_count : source_count));
}
template <class Group> void wait(const Group& group, int line = __builtin_LINE()) { group.sync(line); }
template <unsigned Stages, class Group> void wait_prior(const Group& group, int line = __builtin_LINE()) { group.sync(line); }

}  // namespace cooperative_groups
