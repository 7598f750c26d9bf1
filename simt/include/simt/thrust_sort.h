// thrust's sorts, merges, operations on sorted sets, and searches in sorted ranges.
#pragma once

#include <simt/thrust_reduce.h>

namespace thrust {
namespace detail {

// ---- sorts, all of them stable ----

template <bool d, class It, class Op>
void stable_sort(const Place<d>& place, It first, It last, Op less) {
  using T = value_of<unwrapped<It>>;
  const Index n = last - first;
  if (n <= 1) return;
  with_room<T>(place, 2 * n, [&](T* room, const Place<d>& own) {
    run(
        own, "thrust::sort", "first,",
        [n, less](auto all, T* apart) mutable { simt::sort_keys(apart, all, all, n, less); }, first, room);
  });
}
template <bool d, class It>
void stable_sort(const Place<d>& place, It first, It last) {
  detail::stable_sort(place, first, last, simt::Less{});
}
template <bool d, class It, class Op>
void sort(const Place<d>& place, It first, It last, Op less) {
  detail::stable_sort(place, first, last, less);
}
template <bool d, class It>
void sort(const Place<d>& place, It first, It last) {
  detail::stable_sort(place, first, last, simt::Less{});
}
template <bool d, class K, class V, class Op>
void stable_sort_by_key(const Place<d>& place, K first, K last, V values, Op less) {
  using E = simt::Entry<value_of<unwrapped<K>>, value_of<unwrapped<V>>>;
  const Index n = last - first;
  if (n <= 1) return;
  with_room<E>(place, 2 * n, [&](E* room, const Place<d>& own) {
    run(
        own, "thrust::sort_by_key", "keys_first,values_first,",
        [n, less](auto k, auto v, E* apart) mutable { simt::sort_entries(apart, k, v, k, v, n, less); }, first, values,
        room);
  });
}
template <bool d, class K, class V>
void stable_sort_by_key(const Place<d>& place, K first, K last, V values) {
  detail::stable_sort_by_key(place, first, last, values, simt::Less{});
}
template <bool d, class K, class V, class Op>
void sort_by_key(const Place<d>& place, K first, K last, V values, Op less) {
  detail::stable_sort_by_key(place, first, last, values, less);
}
template <bool d, class K, class V>
void sort_by_key(const Place<d>& place, K first, K last, V values) {
  detail::stable_sort_by_key(place, first, last, values, simt::Less{});
}

// ---- merges and sets ----

// Walks through two sorted ranges and writes the items that `which` keeps: of the first range alone (1), of the second
// alone (2), of both (4, from the first range) and of both once more, for a merge (8, from the second).
template <bool d, class A, class B, class Out, class Op>
Out join(const Place<d>& place, const char* name, int which, A first1, A last1, B first2, B last2, Out result,
         Op less) {
  const Index n = last1 - first1, m = last2 - first2;
  return result + run(
                      place, name, "first1,first2,result",
                      [=](auto a, auto b, auto out) mutable {
                        Index i = 0, k = 0, count = 0;
                        while (i < n || k < m) {
                          const bool only1 = k == m || (i < n && less(a[i], b[k]));
                          const bool only2 = !only1 && (i == n || less(b[k], a[i]));
                          if (only1) {
                            if (which & 1) out[count++] = a[i];
                            ++i;
                          } else if (only2) {
                            if (which & 2) out[count++] = b[k];
                            ++k;
                          } else if (which & 8) {  // the items of the first range come before equal ones
                            out[count++] = a[i++];
                          } else {
                            if (which & 4) out[count++] = a[i];
                            ++i, ++k;
                          }
                        }
                        return count;
                      },
                      first1, first2, result);
}
#define SIMT_JOIN(name, which)                                                                       \
  template <bool d, class A, class B, class Out, class Op>                                           \
  Out name(const Place<d>& place, A first1, A last1, B first2, B last2, Out result, Op less) {       \
    return join(place, "thrust::" #name, which, first1, last1, first2, last2, result, less);         \
  }                                                                                                  \
  template <bool d, class A, class B, class Out>                                                     \
  Out name(const Place<d>& place, A first1, A last1, B first2, B last2, Out result) {                \
    return join(place, "thrust::" #name, which, first1, last1, first2, last2, result, simt::Less{}); \
  }
SIMT_JOIN(merge, 1 | 2 | 8)
SIMT_JOIN(set_union, 1 | 2 | 4)
SIMT_JOIN(set_intersection, 4)
SIMT_JOIN(set_difference, 1)
SIMT_JOIN(set_symmetric_difference, 1 | 2)
#undef SIMT_JOIN
template <bool d, class K1, class K2, class V1, class V2, class KO, class VO, class Op>
std::pair<KO, VO> merge_by_key(const Place<d>& place, K1 first1, K1 last1, K2 first2, K2 last2, V1 values1, V2 values2,
                               KO keys_out, VO values_out, Op less) {
  const Index n = last1 - first1, m = last2 - first2;
  run(
      place, "thrust::merge_by_key", "keys_first1,keys_first2,values_first1,values_first2,keys_result,values_result",
      [=](auto a, auto b, auto va, auto vb, auto k, auto v) mutable {
        for (Index i = 0, j = 0; i + j < n + m;) {
          const Index to = i + j;
          if (i == n || (j < m && less(b[j], a[i]))) {
            k[to] = b[j];
            v[to] = vb[j++];
          } else {
            k[to] = a[i];
            v[to] = va[i++];
          }
        }
      },
      first1, first2, values1, values2, keys_out, values_out);
  return {keys_out + (n + m), values_out + (n + m)};
}
template <bool d, class K1, class K2, class V1, class V2, class KO, class VO>
auto merge_by_key(const Place<d>& place, K1 first1, K1 last1, K2 first2, K2 last2, V1 values1, V2 values2, KO keys_out,
                  VO values_out) {
  return detail::merge_by_key(place, first1, last1, first2, last2, values1, values2, keys_out, values_out,
                              simt::Less{});
}

// ---- searches ----

// The first position at which an item is not less than the value; upper: at which the value is less than an item.
template <class In, class T, class Op>
Index bound(In in, Index n, const T& value, bool upper, Op& less) {
  return simt::bisect(in, n, [&](const auto& item) { return upper ? !less(value, item) : (bool)less(item, value); });
}
template <bool d, class It, class T, class Op>
Index find_bound(const Place<d>& place, const char* name, It first, It last, const T& value, bool upper, Op less) {
  const Index n = last - first;
  return run(place, name, "first", [=](auto in) mutable { return bound(in, n, value, upper, less); }, first);
}
// For each value its bound, or whether it is there.
template <bool d, class It, class Values, class Out, class Op>
Out find_bounds(const Place<d>& place, const char* name, It first, It last, Values values, Values values_last,
                Out result, int what, Op less) {
  const Index n = last - first, m = values_last - values;
  run(
      place, name, "first,values_first,result",
      [=](auto in, auto v, auto out) mutable {
        for (Index i = 0; i < m; ++i) {
          const value_of<decltype(v)> value = v[i];
          const Index at = bound(in, n, value, what == 1, less);
          out[i] =
              static_cast<simt::output_value<decltype(out), Index>>(what < 2 ? at : at < n && !less(value, in[at]));
        }
      },
      first, values, result);
  return result + m;
}
#define SIMT_BOUND(name, what, R, ...)                                                                         \
  template <bool d, class It, class T, class Op>                                                               \
  R name(const Place<d>& place, It first, It last, const T& value, Op less) {                                  \
    const Index at = find_bound(place, "thrust::" #name, first, last, value, what == 1, less);                 \
    return __VA_ARGS__;                                                                                        \
  }                                                                                                            \
  template <bool d, class It, class T>                                                                         \
  R name(const Place<d>& place, It first, It last, const T& value) {                                           \
    return detail::name(place, first, last, value, simt::Less{});                                              \
  }                                                                                                            \
  template <bool d, class It, class Values, class Out, class Op>                                               \
  Out name(const Place<d>& place, It first, It last, Values values, Values values_last, Out result, Op less) { \
    return find_bounds(place, "thrust::" #name, first, last, values, values_last, result, what, less);         \
  }                                                                                                            \
  template <bool d, class It, class Values, class Out>                                                         \
  Out name(const Place<d>& place, It first, It last, Values values, Values values_last, Out result) {          \
    return find_bounds(place, "thrust::" #name, first, last, values, values_last, result, what, simt::Less{}); \
  }
SIMT_BOUND(lower_bound, 0, It, first + at)
SIMT_BOUND(upper_bound, 1, It, first + at)
SIMT_BOUND(binary_search, 2, bool, first + at != last && !less(value, static_cast<value_of<It>>(first[at])))
#undef SIMT_BOUND
template <bool d, class It, class T, class Op>
std::pair<It, It> equal_range(const Place<d>& place, It first, It last, const T& value, Op less) {
  return {detail::lower_bound(place, first, last, value, less), detail::upper_bound(place, first, last, value, less)};
}
template <bool d, class It, class T>
std::pair<It, It> equal_range(const Place<d>& place, It first, It last, const T& value) {
  return detail::equal_range(place, first, last, value, simt::Less{});
}

}  // namespace detail

// clang-format off: a table, one form of an algorithm a line
SIMT_THRUST(sort, (class It), (It first, It last), (first, last))
SIMT_THRUST(sort, (class It, class Op), (It first, It last, Op less), (first, last, less))
SIMT_THRUST(stable_sort, (class It), (It first, It last), (first, last))
SIMT_THRUST(stable_sort, (class It, class Op), (It first, It last, Op less), (first, last, less))
SIMT_THRUST(sort_by_key, (class K, class V), (K keys_first, K keys_last, V values_first), (keys_first, keys_last, values_first))
SIMT_THRUST(sort_by_key, (class K, class V, class Op), (K keys_first, K keys_last, V values_first, Op less), (keys_first, keys_last, values_first, less))
SIMT_THRUST(stable_sort_by_key, (class K, class V), (K keys_first, K keys_last, V values_first), (keys_first, keys_last, values_first))
SIMT_THRUST(stable_sort_by_key, (class K, class V, class Op), (K keys_first, K keys_last, V values_first, Op less), (keys_first, keys_last, values_first, less))
#define SIMT_JOIN(name) \
  SIMT_THRUST(name, (class A, class B, class Out), (A first1, A last1, B first2, B last2, Out result), (first1, last1, first2, last2, result)) \
  SIMT_THRUST(name, (class A, class B, class Out, class Op), (A first1, A last1, B first2, B last2, Out result, Op less), (first1, last1, first2, last2, result, less))
SIMT_JOIN(merge)
SIMT_JOIN(set_union)
SIMT_JOIN(set_intersection)
SIMT_JOIN(set_difference)
SIMT_JOIN(set_symmetric_difference)
#undef SIMT_JOIN
SIMT_THRUST(merge_by_key, (class K1, class K2, class V1, class V2, class KO, class VO), (K1 keys_first1, K1 keys_last1, K2 keys_first2, K2 keys_last2, V1 values_first1, V2 values_first2, KO keys_result, VO values_result), (keys_first1, keys_last1, keys_first2, keys_last2, values_first1, values_first2, keys_result, values_result))
SIMT_THRUST(merge_by_key, (class K1, class K2, class V1, class V2, class KO, class VO, class Op), (K1 keys_first1, K1 keys_last1, K2 keys_first2, K2 keys_last2, V1 values_first1, V2 values_first2, KO keys_result, VO values_result, Op less), (keys_first1, keys_last1, keys_first2, keys_last2, values_first1, values_first2, keys_result, values_result, less))
#define SIMT_BOUND(name) \
  SIMT_THRUST(name, (class It, class T), (It first, It last, const T& value), (first, last, value)) \
  SIMT_THRUST(name, (class It, class T, class Op), (It first, It last, const T& value, Op less), (first, last, value, less)) \
  SIMT_THRUST(name, (class It, class V, class Out), (It first, It last, V values_first, V values_last, Out result), (first, last, values_first, values_last, result)) \
  SIMT_THRUST(name, (class It, class V, class Out, class Op), (It first, It last, V values_first, V values_last, Out result, Op less), (first, last, values_first, values_last, result, less))
SIMT_BOUND(lower_bound)
SIMT_BOUND(upper_bound)
SIMT_BOUND(binary_search)
#undef SIMT_BOUND
SIMT_THRUST(equal_range, (class It, class T), (It first, It last, const T& value), (first, last, value))
SIMT_THRUST(equal_range, (class It, class T, class Op), (It first, It last, const T& value, Op less), (first, last, value, less))
// clang-format on

}  // namespace thrust
