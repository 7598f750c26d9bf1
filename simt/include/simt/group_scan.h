// cooperative_groups::inclusive_scan and exclusive_scan, which a source must include to have, as with nvcc.
#pragma once

#include <simt/group_values.h>

namespace cooperative_groups {

template <class Group, class T, class Op>
detail::plain<T> inclusive_scan(const Group& group, T&& value, Op&& op, int line = __builtin_LINE()) {
  static_assert(
      requires { group.meta_group_size(); }, "a scan works on a tile or a coalesced group, not on a block or the grid");
  using V = detail::plain<T>;
  const auto all = detail::gathered<V>(group.lanes(), value, "inclusive_scan()", line);
  V sum = all.at(0);
  for (unsigned i = 1; i <= group.thread_rank(); ++i) sum = op(sum, all.at(i));
  return sum;
}
template <class Group, class T>
detail::plain<T> inclusive_scan(const Group& group, T&& value, int line = __builtin_LINE()) {
  return inclusive_scan(group, value, plus<detail::plain<T>>(), line);
}
// The first thread gets T(), the others op over the values of lower ranks.
template <class Group, class T, class Op>
detail::plain<T> exclusive_scan(const Group& group, T&& value, Op&& op, int line = __builtin_LINE()) {
  static_assert(
      requires { group.meta_group_size(); }, "a scan works on a tile or a coalesced group, not on a block or the grid");
  using V = detail::plain<T>;
  const auto all = detail::gathered<V>(group.lanes(), value, "exclusive_scan()", line);
  if (group.thread_rank() == 0) return V();
  V sum = all.at(0);
  for (unsigned i = 1; i < group.thread_rank(); ++i) sum = op(sum, all.at(i));
  return sum;
}
template <class Group, class T>
detail::plain<T> exclusive_scan(const Group& group, T&& value, int line = __builtin_LINE()) {
  return exclusive_scan(group, value, plus<detail::plain<T>>(), line);
}

}  // namespace cooperative_groups
