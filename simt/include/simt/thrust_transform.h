// thrust's algorithms that compute each element by itself: fills, transforms, gathers and scatters.
#pragma once

#include <simt/thrust_memory.h>

namespace thrust {
namespace detail {

using simt::Index;
using simt::value_of;

// Calls step(i, iterators...) for i from 0 to n - 1.
template <bool device, class F, class... It>
void each(const Place<device>& place, const char* name, const char* parameters, Index n, F step, const It&... its) {
  if (n <= 0) return;
  run(
      place, name, parameters,
      [n, step](auto... all) mutable {
        for (Index i = 0; i < n; ++i) step(i, all...);
      },
      its...);
}

// ---- fills ----

template <bool d, class It, class N, class T>
It fill_n(const Place<d>& place, It first, N n, const T& value) {
  const auto own = static_cast<simt::output_value<unwrapped<It>, T>>(value);
  each(place, "thrust::fill", "first", (Index)n, [own](Index i, auto out) { out[i] = own; }, first);
  return first + (Index)n;
}
template <bool d, class It, class T>
void fill(const Place<d>& place, It first, It last, const T& value) {
  detail::fill_n(place, first, last - first, value);
}
template <bool d, class It, class T>
void uninitialized_fill(const Place<d>& place, It first, It last, const T& value) {
  detail::fill_n(place, first, last - first, value);
}
template <bool d, class It, class N, class T>
It uninitialized_fill_n(const Place<d>& place, It first, N n, const T& value) {
  return detail::fill_n(place, first, n, value);
}
template <bool d, class It, class T>
void sequence(const Place<d>& place, It first, It last, T start, T step) {
  using V = value_of<unwrapped<It>>;
  each(
      place, "thrust::sequence", "first", last - first,
      [=](Index i, auto out) { out[i] = static_cast<V>(start + step * (T)i); }, first);
}
template <bool d, class It, class T>
void sequence(const Place<d>& place, It first, It last, T start) {
  detail::sequence(place, first, last, start, (T)1);
}
template <bool d, class It>
void sequence(const Place<d>& place, It first, It last) {
  using V = value_of<unwrapped<It>>;
  detail::sequence(place, first, last, (V)0, (V)1);
}
template <bool d, class It, class F>
void tabulate(const Place<d>& place, It first, It last, F function) {
  each(
      place, "thrust::tabulate", "first", last - first, [function](Index i, auto out) mutable { out[i] = function(i); },
      first);
}
template <bool d, class It, class N, class F>
It generate_n(const Place<d>& place, It first, N n, F function) {
  each(
      place, "thrust::generate", "first", (Index)n, [function](Index i, auto out) mutable { out[i] = function(); },
      first);
  return first + (Index)n;
}
template <bool d, class It, class F>
void generate(const Place<d>& place, It first, It last, F function) {
  detail::generate_n(place, first, last - first, function);
}

// ---- transforms ----

template <bool d, class It, class N, class F>
It for_each_n(const Place<d>& place, It first, N n, F function) {
  each(place, "thrust::for_each", "first", (Index)n, [function](Index i, auto in) mutable { function(in[i]); }, first);
  return first + (Index)n;
}
template <bool d, class It, class F>
It for_each(const Place<d>& place, It first, It last, F function) {
  return detail::for_each_n(place, first, last - first, function);
}
template <bool d, class In, class Out, class F>
Out transform(const Place<d>& place, In first, In last, Out result, F op) {
  each(
      place, "thrust::transform", "first,result", last - first,
      [op](Index i, auto in, auto out) mutable { out[i] = op(in[i]); }, first, result);
  return result + (last - first);
}
template <bool d, class In1, class In2, class Out, class F>
Out transform(const Place<d>& place, In1 first1, In1 last1, In2 first2, Out result, F op) {
  each(
      place, "thrust::transform", "first1,first2,result", last1 - first1,
      [op](Index i, auto a, auto b, auto out) mutable { out[i] = op(a[i], b[i]); }, first1, first2, result);
  return result + (last1 - first1);
}
template <bool d, class In, class Out, class F, class Test>
Out transform_if(const Place<d>& place, In first, In last, Out result, F op, Test test) {
  each(
      place, "thrust::transform_if", "first,result", last - first,
      [op, test](Index i, auto in, auto out) mutable {
        if (test(in[i])) out[i] = op(in[i]);
      },
      first, result);
  return result + (last - first);
}
template <bool d, class In, class Stencil, class Out, class F, class Test>
Out transform_if(const Place<d>& place, In first, In last, Stencil stencil, Out result, F op, Test test) {
  each(
      place, "thrust::transform_if", "first,stencil,result", last - first,
      [op, test](Index i, auto in, auto s, auto out) mutable {
        if (test(s[i])) out[i] = op(in[i]);
      },
      first, stencil, result);
  return result + (last - first);
}
template <bool d, class In, class Out, class Test, class T>
Out replace_copy_if(const Place<d>& place, In first, In last, Out result, Test test, const T& value) {
  each(
      place, "thrust::replace_copy_if", "first,result", last - first,
      [test, value](Index i, auto in, auto out) mutable {
        const value_of<decltype(in)> item = in[i];
        if (test(item))
          out[i] = value;
        else
          out[i] = item;
      },
      first, result);
  return result + (last - first);
}
template <bool d, class It, class Test, class T>
void replace_if(const Place<d>& place, It first, It last, Test test, const T& value) {
  each(
      place, "thrust::replace_if", "first", last - first,
      [test, value](Index i, auto in) mutable {
        if (test(in[i])) in[i] = value;
      },
      first);
}
template <bool d, class It, class Stencil, class Test, class T>
void replace_if(const Place<d>& place, It first, It last, Stencil stencil, Test test, const T& value) {
  each(
      place, "thrust::replace_if", "first,stencil", last - first,
      [test, value](Index i, auto in, auto s) mutable {
        if (test(s[i])) in[i] = value;
      },
      first, stencil);
}
template <bool d, class It, class T>
void replace(const Place<d>& place, It first, It last, const T& old_value, const T& new_value) {
  detail::replace_if(place, first, last, [old_value](const auto& item) { return item == old_value; }, new_value);
}
template <bool d, class In, class Out, class T>
Out replace_copy(const Place<d>& place, In first, In last, Out result, const T& old_value, const T& new_value) {
  auto is_old = [old_value](const auto& item) { return item == old_value; };
  return detail::replace_copy_if(place, first, last, result, is_old, new_value);
}
template <bool d, class In, class Out, class F>
Out adjacent_difference(const Place<d>& place, In first, In last, Out result, F op) {
  run(
      place, "thrust::adjacent_difference", "first,result",
      [op](auto in, auto out, Index n) mutable {
        for (Index i = n - 1; i > 0; --i) out[i] = op(in[i], in[i - 1]);
        if (n > 0) out[0] = in[0];
      },
      first, result, (Index)(last - first));
  return result + (last - first);
}
template <bool d, class In, class Out>
Out adjacent_difference(const Place<d>& place, In first, In last, Out result) {
  return detail::adjacent_difference(place, first, last, result, std::minus<>{});
}
template <bool d, class A, class B>
B swap_ranges(const Place<d>& place, A first1, A last1, B first2) {
  each(
      place, "thrust::swap_ranges", "first1,first2", last1 - first1,
      [](Index i, auto a, auto b) {
        const value_of<decltype(a)> item = a[i];
        a[i] = b[i];
        b[i] = item;
      },
      first1, first2);
  return first2 + (last1 - first1);
}
template <bool d, class It>
void reverse(const Place<d>& place, It first, It last) {
  const Index n = last - first;
  each(
      place, "thrust::reverse", "first", n / 2,
      [n](Index i, auto all) {
        const value_of<decltype(all)> item = all[i];
        all[i] = all[n - 1 - i];
        all[n - 1 - i] = item;
      },
      first);
}
template <bool d, class In, class Out>
Out reverse_copy(const Place<d>& place, In first, In last, Out result) {
  const Index n = last - first;
  each(
      place, "thrust::reverse_copy", "first,result", n, [n](Index i, auto in, auto out) { out[i] = in[n - 1 - i]; },
      first, result);
  return result + n;
}

// ---- gathers and scatters ----

template <bool d, class Map, class In, class Out>
Out gather(const Place<d>& place, Map map_first, Map map_last, In input, Out result) {
  each(
      place, "thrust::gather", "map_first,input_first,result", map_last - map_first,
      [](Index i, auto map, auto in, auto out) { out[i] = in[(Index)map[i]]; }, map_first, input, result);
  return result + (map_last - map_first);
}
template <bool d, class Map, class Stencil, class In, class Out, class Test>
Out gather_if(const Place<d>& place, Map map_first, Map map_last, Stencil stencil, In input, Out result, Test test) {
  each(
      place, "thrust::gather_if", "map_first,stencil,input_first,result", map_last - map_first,
      [test](Index i, auto map, auto s, auto in, auto out) mutable {
        if (test(s[i])) out[i] = in[(Index)map[i]];
      },
      map_first, stencil, input, result);
  return result + (map_last - map_first);
}
template <bool d, class Map, class Stencil, class In, class Out>
Out gather_if(const Place<d>& place, Map map_first, Map map_last, Stencil stencil, In input, Out result) {
  return detail::gather_if(place, map_first, map_last, stencil, input, result, [](const auto& s) { return (bool)s; });
}
template <bool d, class In, class Map, class Out>
void scatter(const Place<d>& place, In first, In last, Map map, Out result) {
  each(
      place, "thrust::scatter", "first,map,result", last - first,
      [](Index i, auto in, auto map, auto out) { out[(Index)map[i]] = in[i]; }, first, map, result);
}
template <bool d, class In, class Map, class Stencil, class Out, class Test>
void scatter_if(const Place<d>& place, In first, In last, Map map, Stencil stencil, Out result, Test test) {
  each(
      place, "thrust::scatter_if", "first,map,stencil,result", last - first,
      [test](Index i, auto in, auto map, auto s, auto out) mutable {
        if (test(s[i])) out[(Index)map[i]] = in[i];
      },
      first, map, stencil, result);
}
template <bool d, class In, class Map, class Stencil, class Out>
void scatter_if(const Place<d>& place, In first, In last, Map map, Stencil stencil, Out result) {
  detail::scatter_if(place, first, last, map, stencil, result, [](const auto& s) { return (bool)s; });
}

}  // namespace detail

// clang-format off: a table, one form of an algorithm a line
SIMT_THRUST(fill, (class It, class T), (It first, It last, const T& value), (first, last, value))
SIMT_THRUST(fill_n, (class It, class N, class T), (It first, N n, const T& value), (first, n, value))
SIMT_THRUST(uninitialized_fill, (class It, class T), (It first, It last, const T& value), (first, last, value))
SIMT_THRUST(uninitialized_fill_n, (class It, class N, class T), (It first, N n, const T& value), (first, n, value))
SIMT_THRUST(sequence, (class It), (It first, It last), (first, last))
SIMT_THRUST(sequence, (class It, class T), (It first, It last, T start), (first, last, start))
SIMT_THRUST(sequence, (class It, class T), (It first, It last, T start, std::type_identity_t<T> step), (first, last, start, step))
SIMT_THRUST(tabulate, (class It, class F), (It first, It last, F function), (first, last, function))
SIMT_THRUST(generate, (class It, class F), (It first, It last, F function), (first, last, function))
SIMT_THRUST(generate_n, (class It, class N, class F), (It first, N n, F function), (first, n, function))
SIMT_THRUST(for_each, (class It, class F), (It first, It last, F function), (first, last, function))
SIMT_THRUST(for_each_n, (class It, class N, class F), (It first, N n, F function), (first, n, function))
SIMT_THRUST(transform, (class In, class Out, class F), (In first, In last, Out result, F op), (first, last, result, op))
SIMT_THRUST(transform, (class A, class B, class Out, class F), (A first1, A last1, B first2, Out result, F op), (first1, last1, first2, result, op))
SIMT_THRUST(transform_if, (class In, class Out, class F, class Test), (In first, In last, Out result, F op, Test test), (first, last, result, op, test))
SIMT_THRUST(transform_if, (class In, class S, class Out, class F, class Test), (In first, In last, S stencil, Out result, F op, Test test), (first, last, stencil, result, op, test))
SIMT_THRUST(replace, (class It, class T), (It first, It last, const T& old_value, const T& new_value), (first, last, old_value, new_value))
SIMT_THRUST(replace_if, (class It, class Test, class T), (It first, It last, Test test, const T& value), (first, last, test, value))
SIMT_THRUST(replace_if, (class It, class S, class Test, class T), (It first, It last, S stencil, Test test, const T& value), (first, last, stencil, test, value))
SIMT_THRUST(replace_copy, (class In, class Out, class T), (In first, In last, Out result, const T& old_value, const T& new_value), (first, last, result, old_value, new_value))
SIMT_THRUST(replace_copy_if, (class In, class Out, class Test, class T), (In first, In last, Out result, Test test, const T& value), (first, last, result, test, value))
SIMT_THRUST(adjacent_difference, (class In, class Out), (In first, In last, Out result), (first, last, result))
SIMT_THRUST(adjacent_difference, (class In, class Out, class F), (In first, In last, Out result, F op), (first, last, result, op))
SIMT_THRUST(swap_ranges, (class A, class B), (A first1, A last1, B first2), (first1, last1, first2))
SIMT_THRUST(reverse, (class It), (It first, It last), (first, last))
SIMT_THRUST(reverse_copy, (class In, class Out), (In first, In last, Out result), (first, last, result))
SIMT_THRUST(gather, (class Map, class In, class Out), (Map map_first, Map map_last, In input, Out result), (map_first, map_last, input, result))
SIMT_THRUST(gather_if, (class Map, class S, class In, class Out), (Map map_first, Map map_last, S stencil, In input, Out result), (map_first, map_last, stencil, input, result))
SIMT_THRUST(gather_if, (class Map, class S, class In, class Out, class Test), (Map map_first, Map map_last, S stencil, In input, Out result, Test test), (map_first, map_last, stencil, input, result, test))
SIMT_THRUST(scatter, (class In, class Map, class Out), (In first, In last, Map map, Out result), (first, last, map, result))
SIMT_THRUST(scatter_if, (class In, class Map, class S, class Out), (In first, In last, Map map, S stencil, Out result), (first, last, map, stencil, result))
SIMT_THRUST(scatter_if, (class In, class Map, class S, class Out, class Test), (In first, In last, Map map, S stencil, Out result, Test test), (first, last, map, stencil, result, test))
// clang-format on

}  // namespace thrust
