// thrust's prefix sums.
#pragma once

#include <simt/thrust_reduce.h>

namespace thrust {
namespace detail {

template <bool d, class In, class Out, class T, class Op>
Out scan(const Place<d>& place, const char* name, In first, In last, Out result, T init, bool has_init, bool inclusive,
         Op op) {
  const Index n = last - first;
  run(
      place, name, "first,result",
      [=](auto in, auto out) mutable { simt::scan<T>(in, out, n, init, has_init, inclusive, op); }, first, result);
  return result + n;
}
template <bool d, class In, class Out, class Op>
Out inclusive_scan(const Place<d>& place, In first, In last, Out result, Op op) {
  using T = value_of<unwrapped<In>>;
  return detail::scan(place, "thrust::inclusive_scan", first, last, result, T{}, false, true, op);
}
template <bool d, class In, class Out>
Out inclusive_scan(const Place<d>& place, In first, In last, Out result) {
  return detail::inclusive_scan(place, first, last, result, simt::Plus{});
}
template <bool d, class In, class Out, class T, class Op>
Out inclusive_scan(const Place<d>& place, In first, In last, Out result, T init, Op op) {
  return detail::scan(place, "thrust::inclusive_scan", first, last, result, init, true, true, op);
}
template <bool d, class In, class Out, class T, class Op>
Out exclusive_scan(const Place<d>& place, In first, In last, Out result, T init, Op op) {
  return detail::scan(place, "thrust::exclusive_scan", first, last, result, init, true, false, op);
}
template <bool d, class In, class Out, class T>
Out exclusive_scan(const Place<d>& place, In first, In last, Out result, T init) {
  return detail::exclusive_scan(place, first, last, result, init, simt::Plus{});
}
template <bool d, class In, class Out>
Out exclusive_scan(const Place<d>& place, In first, In last, Out result) {
  return detail::exclusive_scan(place, first, last, result, value_of<unwrapped<In>>{}, simt::Plus{});
}
template <bool d, class In, class Out, class Map, class Op>
Out transform_inclusive_scan(const Place<d>& place, In first, In last, Out result, Map map, Op op) {
  return detail::inclusive_scan(place, transform_iterator<Map, In>(first, map), transform_iterator<Map, In>(last, map),
                                result, op);
}
template <bool d, class In, class Out, class Map, class T, class Op>
Out transform_inclusive_scan(const Place<d>& place, In first, In last, Out result, Map map, T init, Op op) {
  return detail::inclusive_scan(place, transform_iterator<Map, In>(first, map), transform_iterator<Map, In>(last, map),
                                result, init, op);
}
template <bool d, class In, class Out, class Map, class T, class Op>
Out transform_exclusive_scan(const Place<d>& place, In first, In last, Out result, Map map, T init, Op op) {
  return detail::exclusive_scan(place, transform_iterator<Map, In>(first, map), transform_iterator<Map, In>(last, map),
                                result, init, op);
}

// ---- by key ----

template <bool d, class K, class V, class Out, class T, class Same, class Op>
Out scan_by_key(const Place<d>& place, const char* name, K first, K last, V values, Out result, T init, bool inclusive,
                Same same, Op op) {
  const Index n = last - first;
  run(
      place, name, "first1,first2,result",
      [=](auto k, auto v, auto out) mutable { simt::scan_by_key<T>(k, v, out, n, init, inclusive, same, op); }, first,
      values, result);
  return result + n;
}
template <bool d, class K, class V, class Out, class Same, class Op>
Out inclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result, Same same, Op op) {
  using T = value_of<unwrapped<V>>;
  return detail::scan_by_key(place, "thrust::inclusive_scan_by_key", first, last, values, result, T{}, true, same, op);
}
template <bool d, class K, class V, class Out, class Same>
Out inclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result, Same same) {
  return detail::inclusive_scan_by_key(place, first, last, values, result, same, simt::Plus{});
}
template <bool d, class K, class V, class Out>
Out inclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result) {
  return detail::inclusive_scan_by_key(place, first, last, values, result, simt::Equal{}, simt::Plus{});
}
template <bool d, class K, class V, class Out, class T, class Same, class Op>
Out exclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result, T init, Same same, Op op) {
  return detail::scan_by_key(place, "thrust::exclusive_scan_by_key", first, last, values, result, init, false, same,
                             op);
}
template <bool d, class K, class V, class Out, class T, class Same>
Out exclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result, T init, Same same) {
  return detail::exclusive_scan_by_key(place, first, last, values, result, init, same, simt::Plus{});
}
template <bool d, class K, class V, class Out, class T>
Out exclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result, T init) {
  return detail::exclusive_scan_by_key(place, first, last, values, result, init, simt::Equal{}, simt::Plus{});
}
template <bool d, class K, class V, class Out>
Out exclusive_scan_by_key(const Place<d>& place, K first, K last, V values, Out result) {
  return detail::exclusive_scan_by_key(place, first, last, values, result, value_of<unwrapped<V>>{}, simt::Equal{},
                                       simt::Plus{});
}

}  // namespace detail

// clang-format off: a table, one form of an algorithm a line
SIMT_THRUST(inclusive_scan, (class In, class Out), (In first, In last, Out result), (first, last, result))
SIMT_THRUST(inclusive_scan, (class In, class Out, class Op), (In first, In last, Out result, Op op), (first, last, result, op))
SIMT_THRUST(inclusive_scan, (class In, class Out, class T, class Op), (In first, In last, Out result, T init, Op op), (first, last, result, init, op))
SIMT_THRUST(exclusive_scan, (class In, class Out), (In first, In last, Out result), (first, last, result))
SIMT_THRUST(exclusive_scan, (class In, class Out, class T), (In first, In last, Out result, T init), (first, last, result, init))
SIMT_THRUST(exclusive_scan, (class In, class Out, class T, class Op), (In first, In last, Out result, T init, Op op), (first, last, result, init, op))
SIMT_THRUST(transform_inclusive_scan, (class In, class Out, class Map, class Op), (In first, In last, Out result, Map map, Op op), (first, last, result, map, op))
SIMT_THRUST(transform_inclusive_scan, (class In, class Out, class Map, class T, class Op), (In first, In last, Out result, Map map, T init, Op op), (first, last, result, map, init, op))
SIMT_THRUST(transform_exclusive_scan, (class In, class Out, class Map, class T, class Op), (In first, In last, Out result, Map map, T init, Op op), (first, last, result, map, init, op))
SIMT_THRUST(inclusive_scan_by_key, (class K, class V, class Out), (K first1, K last1, V first2, Out result), (first1, last1, first2, result))
SIMT_THRUST(inclusive_scan_by_key, (class K, class V, class Out, class Same), (K first1, K last1, V first2, Out result, Same same), (first1, last1, first2, result, same))
SIMT_THRUST(inclusive_scan_by_key, (class K, class V, class Out, class Same, class Op), (K first1, K last1, V first2, Out result, Same same, Op op), (first1, last1, first2, result, same, op))
SIMT_THRUST(exclusive_scan_by_key, (class K, class V, class Out), (K first1, K last1, V first2, Out result), (first1, last1, first2, result))
SIMT_THRUST(exclusive_scan_by_key, (class K, class V, class Out, class T), (K first1, K last1, V first2, Out result, T init), (first1, last1, first2, result, init))
SIMT_THRUST(exclusive_scan_by_key, (class K, class V, class Out, class T, class Same), (K first1, K last1, V first2, Out result, T init, Same same), (first1, last1, first2, result, init, same))
SIMT_THRUST(exclusive_scan_by_key, (class K, class V, class Out, class T, class Same, class Op), (K first1, K last1, V first2, Out result, T init, Same same, Op op), (first1, last1, first2, result, init, same, op))
// clang-format on

}  // namespace thrust
