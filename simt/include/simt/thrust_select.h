// thrust's algorithms that keep some of the elements: copies with a condition, removals, partitions, unique.
#pragma once

#include <simt/thrust_transform.h>

namespace thrust {
namespace detail {

// Tells from an item and its position whether to keep it: by a test of the item, or of its stencil.
template <class Test>
auto test_item(Test test, bool wanted = true) {
  return [test, wanted](const auto& item, Index, auto) mutable { return (bool)test(item) == wanted; };
}
template <class Test>
auto test_stencil(Test test, bool wanted = true) {
  return [test, wanted](const auto&, Index i, auto stencil) mutable { return (bool)test(stencil[i]) == wanted; };
}

template <bool d, class In, class Stencil, class Out, class Keep>
Out keep_items(const Place<d>& place, const char* name, In first, In last, Stencil stencil, Out result, Keep keep) {
  const Index n = last - first;
  if (n <= 0) return result;
  return result +
         run(
             place, name, "first,result,stencil",
             [n, keep](auto in, auto out, auto s) mutable {
               return simt::select(in, out, n, [&](const auto& item, Index i) mutable { return keep(item, i, s); });
             },
             first, result, stencil);
}

template <bool d, class In, class Out, class Test>
Out copy_if(const Place<d>& place, In first, In last, Out result, Test test) {
  return keep_items(place, "thrust::copy_if", first, last, 0, result, test_item(test));
}
template <bool d, class In, class S, class Out, class Test>
Out copy_if(const Place<d>& place, In first, In last, S stencil, Out result, Test test) {
  return keep_items(place, "thrust::copy_if", first, last, stencil, result, test_stencil(test));
}
template <bool d, class In, class Out, class Test>
Out remove_copy_if(const Place<d>& place, In first, In last, Out result, Test test) {
  return keep_items(place, "thrust::remove_copy_if", first, last, 0, result, test_item(test, false));
}
template <bool d, class In, class S, class Out, class Test>
Out remove_copy_if(const Place<d>& place, In first, In last, S stencil, Out result, Test test) {
  return keep_items(place, "thrust::remove_copy_if", first, last, stencil, result, test_stencil(test, false));
}
template <bool d, class It, class Test>
It remove_if(const Place<d>& place, It first, It last, Test test) {
  return keep_items(place, "thrust::remove_if", first, last, 0, first, test_item(test, false));
}
template <bool d, class It, class S, class Test>
It remove_if(const Place<d>& place, It first, It last, S stencil, Test test) {
  return keep_items(place, "thrust::remove_if", first, last, stencil, first, test_stencil(test, false));
}
template <bool d, class It, class T>
It remove(const Place<d>& place, It first, It last, const T& value) {
  return detail::remove_if(place, first, last, [value](const auto& item) { return item == value; });
}
template <bool d, class In, class Out, class T>
Out remove_copy(const Place<d>& place, In first, In last, Out result, const T& value) {
  return detail::remove_copy_if(place, first, last, result, [value](const auto& item) { return item == value; });
}

// ---- unique ----

template <bool d, class Keys, class Values, class KeysOut, class ValuesOut, class Same>
std::pair<KeysOut, ValuesOut> unique_by_key_copy(const Place<d>& place, Keys first, Keys last, Values values,
                                                 KeysOut keys_out, ValuesOut values_out, Same same) {
  const Index n = last - first;
  const Index runs = run(
      place, "thrust::unique_by_key", "keys_first,values_first,keys_result,values_result",
      [n, same](auto k, auto v, auto ko, auto vo) mutable { return simt::unique(k, v, ko, vo, n, same); }, first,
      values, keys_out, values_out);
  return {keys_out + runs, values_out + runs};
}
template <bool d, class Keys, class Values, class KeysOut, class ValuesOut>
auto unique_by_key_copy(const Place<d>& place, Keys first, Keys last, Values values, KeysOut keys_out,
                        ValuesOut values_out) {
  return detail::unique_by_key_copy(place, first, last, values, keys_out, values_out, simt::Equal{});
}
template <bool d, class Keys, class Values, class Same>
auto unique_by_key(const Place<d>& place, Keys first, Keys last, Values values, Same same) {
  return detail::unique_by_key_copy(place, first, last, values, first, values, same);
}
template <bool d, class Keys, class Values>
auto unique_by_key(const Place<d>& place, Keys first, Keys last, Values values) {
  return detail::unique_by_key_copy(place, first, last, values, first, values, simt::Equal{});
}
template <bool d, class In, class Out, class Same>
Out unique_copy(const Place<d>& place, In first, In last, Out result, Same same) {
  const Index n = last - first;
  return result + run(
                      place, "thrust::unique", "first,result",
                      [n, same](auto in, auto out) mutable {
                        Index kept = 0;
                        for (Index i = 0; i < n; ++kept) {
                          const value_of<decltype(in)> item = in[i];
                          for (++i; i < n && same(item, static_cast<value_of<decltype(in)>>(in[i]));) ++i;
                          out[kept] = item;
                        }
                        return kept;
                      },
                      first, result);
}
template <bool d, class In, class Out>
Out unique_copy(const Place<d>& place, In first, In last, Out result) {
  return detail::unique_copy(place, first, last, result, simt::Equal{});
}
template <bool d, class It, class Same>
It unique(const Place<d>& place, It first, It last, Same same) {
  return detail::unique_copy(place, first, last, first, same);
}
template <bool d, class It>
It unique(const Place<d>& place, It first, It last) {
  return detail::unique_copy(place, first, last, first, simt::Equal{});
}
template <bool d, class It, class Same>
Index unique_count(const Place<d>& place, It first, It last, Same same) {
  const Index n = last - first;
  return run(
      place, "thrust::unique_count", "first",
      [n, same](auto in) mutable {
        Index runs = n > 0;
        for (Index i = 1; i < n; ++i) runs += !same(in[i - 1], in[i]);
        return runs;
      },
      first);
}
template <bool d, class It>
Index unique_count(const Place<d>& place, It first, It last) {
  return detail::unique_count(place, first, last, simt::Equal{});
}

// ---- partitions: all of them keep the order of the elements ----

template <bool d, class It, class S, class Keep>
It part_items(const Place<d>& place, const char* name, It first, It last, S stencil, Keep keep) {
  using T = value_of<unwrapped<It>>;
  const Index n = last - first;
  if (n <= 0) return first;
  const Index kept = with_room<T>(place, n, [&](T* room, const Place<d>& own) {
    return run(
        own, name, "first,stencil,",
        [n, keep](auto all, auto s, T* apart) mutable {
          Index kept = 0, rest = 0;
          for (Index i = 0; i < n; ++i) {
            const T item = all[i];
            if (keep(item, i, s))
              all[kept++] = item;
            else
              apart[rest++] = item;
          }
          for (Index i = 0; i < rest; ++i) all[kept + i] = apart[i];
          return kept;
        },
        first, stencil, room);
  });
  return first + kept;
}
template <bool d, class It, class Test>
It partition(const Place<d>& place, It first, It last, Test test) {
  return part_items(place, "thrust::partition", first, last, 0, test_item(test));
}
template <bool d, class It, class S, class Test>
It partition(const Place<d>& place, It first, It last, S stencil, Test test) {
  return part_items(place, "thrust::partition", first, last, stencil, test_stencil(test));
}
template <bool d, class It, class Test>
It stable_partition(const Place<d>& place, It first, It last, Test test) {
  return part_items(place, "thrust::stable_partition", first, last, 0, test_item(test));
}
template <bool d, class It, class S, class Test>
It stable_partition(const Place<d>& place, It first, It last, S stencil, Test test) {
  return part_items(place, "thrust::stable_partition", first, last, stencil, test_stencil(test));
}
template <bool d, class In, class Out1, class Out2, class Test>
std::pair<Out1, Out2> partition_copy(const Place<d>& place, In first, In last, Out1 out_true, Out2 out_false,
                                     Test test) {
  const Index n = last - first;
  const Index kept = run(
      place, "thrust::partition_copy", "first,out_true,out_false",
      [n, test](auto in, auto yes, auto no) mutable {
        Index kept = 0;
        for (Index i = 0; i < n; ++i) {
          const value_of<decltype(in)> item = in[i];
          if (test(item))
            yes[kept++] = item;
          else
            no[i - kept] = item;
        }
        return kept;
      },
      first, out_true, out_false);
  return {out_true + kept, out_false + (n - kept)};
}
template <bool d, class In, class Out1, class Out2, class Test>
auto stable_partition_copy(const Place<d>& place, In first, In last, Out1 out_true, Out2 out_false, Test test) {
  return detail::partition_copy(place, first, last, out_true, out_false, test);
}

}  // namespace detail

// clang-format off: a table, one form of an algorithm a line
SIMT_THRUST(copy_if, (class In, class Out, class Test), (In first, In last, Out result, Test test), (first, last, result, test))
SIMT_THRUST(copy_if, (class In, class S, class Out, class Test), (In first, In last, S stencil, Out result, Test test), (first, last, stencil, result, test))
SIMT_THRUST(remove_copy_if, (class In, class Out, class Test), (In first, In last, Out result, Test test), (first, last, result, test))
SIMT_THRUST(remove_copy_if, (class In, class S, class Out, class Test), (In first, In last, S stencil, Out result, Test test), (first, last, stencil, result, test))
SIMT_THRUST(remove_if, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(remove_if, (class It, class S, class Test), (It first, It last, S stencil, Test test), (first, last, stencil, test))
SIMT_THRUST(remove, (class It, class T), (It first, It last, const T& value), (first, last, value))
SIMT_THRUST(remove_copy, (class In, class Out, class T), (In first, In last, Out result, const T& value), (first, last, result, value))
SIMT_THRUST(unique, (class It), (It first, It last), (first, last))
SIMT_THRUST(unique, (class It, class Same), (It first, It last, Same same), (first, last, same))
SIMT_THRUST(unique_copy, (class In, class Out), (In first, In last, Out result), (first, last, result))
SIMT_THRUST(unique_copy, (class In, class Out, class Same), (In first, In last, Out result, Same same), (first, last, result, same))
SIMT_THRUST(unique_count, (class It), (It first, It last), (first, last))
SIMT_THRUST(unique_count, (class It, class Same), (It first, It last, Same same), (first, last, same))
SIMT_THRUST(unique_by_key, (class K, class V), (K keys_first, K keys_last, V values_first), (keys_first, keys_last, values_first))
SIMT_THRUST(unique_by_key, (class K, class V, class Same), (K keys_first, K keys_last, V values_first, Same same), (keys_first, keys_last, values_first, same))
SIMT_THRUST(unique_by_key_copy, (class K, class V, class KO, class VO), (K keys_first, K keys_last, V values_first, KO keys_result, VO values_result), (keys_first, keys_last, values_first, keys_result, values_result))
SIMT_THRUST(unique_by_key_copy, (class K, class V, class KO, class VO, class Same), (K keys_first, K keys_last, V values_first, KO keys_result, VO values_result, Same same), (keys_first, keys_last, values_first, keys_result, values_result, same))
SIMT_THRUST(partition, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(partition, (class It, class S, class Test), (It first, It last, S stencil, Test test), (first, last, stencil, test))
SIMT_THRUST(stable_partition, (class It, class Test), (It first, It last, Test test), (first, last, test))
SIMT_THRUST(stable_partition, (class It, class S, class Test), (It first, It last, S stencil, Test test), (first, last, stencil, test))
SIMT_THRUST(partition_copy, (class In, class O1, class O2, class Test), (In first, In last, O1 out_true, O2 out_false, Test test), (first, last, out_true, out_false, test))
SIMT_THRUST(stable_partition_copy, (class In, class O1, class O2, class Test), (In first, In last, O1 out_true, O2 out_false, Test test), (first, last, out_true, out_false, test))
// clang-format on

}  // namespace thrust
