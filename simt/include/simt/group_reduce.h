// cooperative_groups::reduce, which a source must include to have, as with nvcc.
#pragma once

#include <simt/group_values.h>

namespace cooperative_groups {

// Every thread gets op over all values, combined pairwise in the order of the ranks.
template <class Group, class T, class Op>
detail::plain<T> reduce(const Group& group, T&& value, Op&& op, int line = __builtin_LINE()) {
  static_assert(
      requires { group.meta_group_size(); }, "reduce works on a tile or a coalesced group, not on a block or the grid");
  using V = detail::plain<T>;
  const auto all = detail::gathered<V>(group.lanes(), value, "reduce()", line);
  const unsigned count = group.num_threads();
  V part[32];
  for (unsigned i = 0; i < count; ++i) part[i] = all.at(i);
  for (unsigned step = 1; step < count; step *= 2)
    for (unsigned i = 0; i + step < count; i += 2 * step) part[i] = op(part[i], part[i + step]);
  return part[0];
}

}  // namespace cooperative_groups
