// thrust's reductions: sums, counts, extremes, tests of all elements, searches for one, comparisons.
#pragma once

#include <simt/thrust_functional.h>
#include <simt/thrust_iterators.h>
#include <simt/thrust_memory.h>
#include <simt/thrust_transform.h>

namespace thrust {
namespace detail {

template <bool d, class It, class T, class Op>
T reduce(const Place<d>& place, It first, It last, T init, Op op) {
  const Index n = last - first;
  return run(
      place, "thrust::reduce", "first", [n, init, op](auto in) mutable { return simt::reduce<T>(in, n, init, op); },
      first);
}
template <bool d, class It, class T>
T reduce(const Place<d>& place, It first, It last, T init) {
  return detail::reduce(place, first, last, init, simt::Plus{});
}
template <bool d, class It>
auto reduce(const Place<d>& place, It first, It last) {
  return detail::reduce(place, first, last, value_of<unwrapped<It>>{}, simt::Plus{});
}
template <bool d, class It, class Map, class T, class Op>
T transform_reduce(const Place<d>& place, It first, It last, Map map, T init, Op op) {
  const Index n = last - first;
  return run(
      place, "thrust::transform_reduce", "first",
      [=](auto in) mutable {
        T sum = init;
        for (Index i = 0; i < n; ++i) sum = op(sum, map(in[i]));
        return sum;
      },
      first);
}
template <bool d, class A, class B, class T, class Op1, class Op2>
T inner_product(const Place<d>& place, A first1, A last1, B first2, T init, Op1 add, Op2 multiply) {
  const Index n = last1 - first1;
  return run(
      place, "thrust::inner_product", "first1,first2",
      [=](auto a, auto b) mutable {
        T sum = init;
        for (Index i = 0; i < n; ++i) sum = add(sum, multiply(a[i], b[i]));
        return sum;
      },
      first1, first2);
}
template <bool d, class A, class B, class T>
T inner_product(const Place<d>& place, A first1, A last1, B first2, T init) {
  return detail::inner_product(place, first1, last1, first2, init, simt::Plus{}, std::multiplies<>{});
}
template <bool d, class K, class V, class KO, class VO, class Same, class Op>
std::pair<KO, VO> reduce_by_key(const Place<d>& place, K first, K last, V values, KO keys_out, VO values_out, Same same,
                                Op op) {
  const Index n = last - first;
  using T = value_of<unwrapped<V>>;
  const Index runs = run(
      place, "thrust::reduce_by_key", "keys_first,values_first,keys_output,values_output",
      [=](auto k, auto v, auto ko, auto vo) mutable { return simt::reduce_by_key<T>(k, v, ko, vo, n, same, op); },
      first, values, keys_out, values_out);
  return {keys_out + runs, values_out + runs};
}
template <bool d, class K, class V, class KO, class VO, class Same>
auto reduce_by_key(const Place<d>& place, K first, K last, V values, KO keys_out, VO values_out, Same same) {
  return detail::reduce_by_key(place, first, last, values, keys_out, values_out, same, simt::Plus{});
}
template <bool d, class K, class V, class KO, class VO>
auto reduce_by_key(const Place<d>& place, K first, K last, V values, KO keys_out, VO values_out) {
  return detail::reduce_by_key(place, first, last, values, keys_out, values_out, simt::Equal{}, simt::Plus{});
}

// ---- counts and tests ----

template <bool d, class It, class Test>
Index count_if(const Place<d>& place, It first, It last, Test test) {
  const Index n = last - first;
  return run(
      place, "thrust::count_if", "first",
      [n, test](auto in) mutable {
        Index count = 0;
        for (Index i = 0; i < n; ++i) count += (bool)test(in[i]);
        return count;
      },
      first);
}
template <bool d, class It, class T>
Index count(const Place<d>& place, It first, It last, const T& value) {
  return detail::count_if(place, first, last, [value](const auto& item) { return item == value; });
}
// The position of the first item for which the test has the result `wanted`, or the number of items.
template <bool d, class It, class Test>
Index find_position(const Place<d>& place, const char* name, It first, It last, Test test, bool wanted) {
  const Index n = last - first;
  return run(
      place, name, "first",
      [n, test, wanted](auto in) mutable {
        Index i = 0;
        while (i < n && (bool)test(in[i]) != wanted) ++i;
        return i;
      },
      first);
}
template <bool d, class It, class Test>
It find_if(const Place<d>& place, It first, It last, Test test) {
  return first + find_position(place, "thrust::find_if", first, last, test, true);
}
template <bool d, class It, class Test>
It find_if_not(const Place<d>& place, It first, It last, Test test) {
  return first + find_position(place, "thrust::find_if_not", first, last, test, false);
}
template <bool d, class It, class T>
It find(const Place<d>& place, It first, It last, const T& value) {
  auto is_value = [value](const auto& item) { return item == value; };
  return first + find_position(place, "thrust::find", first, last, is_value, true);
}
template <bool d, class It, class Test>
bool all_of(const Place<d>& place, It first, It last, Test test) {
  return find_position(place, "thrust::all_of", first, last, test, false) == last - first;
}
template <bool d, class It, class Test>
bool any_of(const Place<d>& place, It first, It last, Test test) {
  return find_position(place, "thrust::any_of", first, last, test, true) != last - first;
}
template <bool d, class It, class Test>
bool none_of(const Place<d>& place, It first, It last, Test test) {
  return find_position(place, "thrust::none_of", first, last, test, true) == last - first;
}
template <bool d, class It, class Test>
It partition_point(const Place<d>& place, It first, It last, Test test) {
  return first + find_position(place, "thrust::partition_point", first, last, test, false);
}
template <bool d, class It, class Test>
bool is_partitioned(const Place<d>& place, It first, It last, Test test) {
  const It middle = detail::partition_point(place, first, last, test);
  return find_position(place, "thrust::is_partitioned", middle, last, test, true) == last - middle;
}
template <bool d, class It, class Op>
It is_sorted_until(const Place<d>& place, It first, It last, Op less) {
  const Index n = last - first;
  return first + run(
                     place, "thrust::is_sorted", "first",
                     [n, less](auto in) mutable {
                       Index i = n > 0;
                       while (i < n && !less(in[i], in[i - 1])) ++i;
                       return i;
                     },
                     first);
}
template <bool d, class It>
It is_sorted_until(const Place<d>& place, It first, It last) {
  return detail::is_sorted_until(place, first, last, simt::Less{});
}
template <bool d, class It, class Op>
bool is_sorted(const Place<d>& place, It first, It last, Op less) {
  return detail::is_sorted_until(place, first, last, less) == last;
}
template <bool d, class It>
bool is_sorted(const Place<d>& place, It first, It last) {
  return detail::is_sorted_until(place, first, last, simt::Less{}) == last;
}

// ---- comparisons of two ranges ----

template <bool d, class A, class B, class Same>
std::pair<A, B> mismatch(const Place<d>& place, A first1, A last1, B first2, Same same) {
  const Index n = last1 - first1;
  const Index at = run(
      place, "thrust::mismatch", "first1,first2",
      [n, same](auto a, auto b) mutable {
        Index i = 0;
        while (i < n && same(a[i], b[i])) ++i;
        return i;
      },
      first1, first2);
  return {first1 + at, first2 + at};
}
template <bool d, class A, class B>
std::pair<A, B> mismatch(const Place<d>& place, A first1, A last1, B first2) {
  return detail::mismatch(place, first1, last1, first2, simt::Equal{});
}
template <bool d, class A, class B, class Same>
bool equal(const Place<d>& place, A first1, A last1, B first2, Same same) {
  if constexpr (d && (system_of<A>() == 1) != (system_of<B>() == 1)) {
    // One of the two lies on the host.
    const Index n = last1 - first1;
    std::vector<value_of<A>> a((std::size_t)n);
    std::vector<value_of<B>> b((std::size_t)n);
    detail::copy_n(Place<false>{}, first1, n, a.begin());
    detail::copy_n(Place<false>{}, first2, n, b.begin());
    return std::equal(a.begin(), a.end(), b.begin(), same);
  } else {
    return detail::mismatch(place, first1, last1, first2, same).first == last1;
  }
}
template <bool d, class A, class B>
bool equal(const Place<d>& place, A first1, A last1, B first2) {
  return detail::equal(place, first1, last1, first2, simt::Equal{});
}

// ---- extremes: of equal elements the first ----

template <bool d, class It, class Op>
It min_element(const Place<d>& place, It first, It last, Op less) {
  const Index n = last - first;
  return first + run(
                     place, "thrust::min_element", "first",
                     [n, less](auto in) mutable { return simt::find_least(in, n, less); }, first);
}
template <bool d, class It>
It min_element(const Place<d>& place, It first, It last) {
  return detail::min_element(place, first, last, simt::Less{});
}
template <bool d, class It, class Op>
It max_element(const Place<d>& place, It first, It last, Op less) {
  const Index n = last - first;
  return first + run(
                     place, "thrust::max_element", "first",
                     [n, less](auto in) mutable { return simt::find_most(in, n, less); }, first);
}
template <bool d, class It>
It max_element(const Place<d>& place, It first, It last) {
  return detail::max_element(place, first, last, simt::Less{});
}
template <bool d, class It, class Op>
std::pair<It, It> minmax_element(const Place<d>& place, It first, It last, Op less) {
  return {detail::min_element(place, first, last, less), detail::max_element(place, first, last, less)};
}
template <bool d, class It>
std::pair<It, It> minmax_element(const Place<d>& place, It first, It last) {
  return detail::minmax_element(place, first, last, simt::Less{});
}

}  // namespace detail

// clang-format off: a table, one form of an algorithm a line
SIMT_THRUST(reduce, (class It), (It first, It last), (first, last))
SIMT_THRUST(reduce, (class It, class T), (It first, It last, T init), (first, last, init))
SIMT_THRUST(reduce, (class It, class T, class Op), (It first, It last, T init, Op op), (first, last, init, op))
SIMT_THRUST(transform_reduce, (class It, class Map, class T, class Op), (It first, It last, Map map, T init, Op op), (first, last, map, init, op))
SIMT_THRUST(inner_product, (class A, class B, class T), (A first1, A last1, B first2, T init), (first1, last1, first2, init))
SIMT_THRUST(inner_product, (class A, class B, class T, class Op1, class Op2), (A first1, A last1, B first2, T init, Op1 op1, Op2 op2), (first1, last1, first2, init, op1, op2))
SIMT_THRUST(reduce_by_key, (class K, class V, class KO, class VO), (K keys_first, K keys_last, V values_first, KO keys_output, VO values_output), (keys_first, keys_last, values_first, keys_output, values_output))
SIMT_THRUST(reduce_by_key, (class K, class V, class KO, class VO, class Same), (K keys_first, K keys_last, V values_first, KO keys_output, VO values_output, Same same), (keys_first, keys_last, values_first, keys_output, values_output, same))
SIMT_THRUST(reduce_by_key, (class K, class V, class KO, class VO, class Same, class Op), (K keys_first, K keys_last, V values_first, KO keys_output, VO values_output, Same same, Op op), (keys_first, keys_last, values_first, keys_output, values_output, same, op))
SIMT_THRUST(count, (class It, class T), (It first, It last, const T& value), (first, last, value))
SIMT_THRUST(count_if, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(find, (class It, class T), (It first, It last, const T& value), (first, last, value))
SIMT_THRUST(find_if, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(find_if_not, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(all_of, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(any_of, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(none_of, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(partition_point, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(is_partitioned, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(is_sorted, (class It), (It first, It last), (first, last))
SIMT_THRUST(is_sorted, (class It, class Op), (It first, It last, Op less), (first, last, less))
SIMT_THRUST(is_sorted_until, (class It), (It first, It last), (first, last))
SIMT_THRUST(is_sorted_until, (class It, class Op), (It first, It last, Op less), (first, last, less))
SIMT_THRUST(mismatch, (class A, class B), (A first1, A last1, B first2), (first1, last1, first2))
SIMT_THRUST(mismatch, (class A, class B, class Same), (A first1, A last1, B first2, Same same), (first1, last1, first2, same))
SIMT_THRUST(equal, (class A, class B), (A first1, A last1, B first2), (first1, last1, first2))
SIMT_THRUST(equal, (class A, class B, class Same), (A first1, A last1, B first2, Same same), (first1, last1, first2, same))
SIMT_THRUST(min_element, (class It), (It first, It last), (first, last))
SIMT_THRUST(min_element, (class It, class Op), (It first, It last, Op less), (first, last, less))
SIMT_THRUST(max_element, (class It), (It first, It last), (first, last))
SIMT_THRUST(max_element, (class It, class Op), (It first, It last, Op less), (first, last, less))
SIMT_THRUST(minmax_element, (class It), (It first, It last), (first, last))
SIMT_THRUST(minmax_element, (class It, class Op), (It first, It last, Op less), (first, last, less))
// clang-format on

template <class T> constexpr T max(const T& a, const T& b) { return a < b ? b : a; }
template <class T> constexpr T min(const T& a, const T& b) { return b < a ? b : a; }

}  // namespace thrust
