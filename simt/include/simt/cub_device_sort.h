// cub::DeviceRadixSort, cub::DeviceMergeSort and cub::DeviceMerge.
#pragma once

#include <simt/cub_device_keys.h>

namespace cub {

struct DeviceRadixSort {
#define SIMT_RADIX_SORT(Keys, Pairs, descending)                                                                    \
  template <class K, detail::Count N>                                                                               \
  static cudaError_t Keys(SIMT_CUB_TEMP, const K* d_keys_in, K* d_keys_out, N num_items, int begin_bit = 0,         \
                          int end_bit = sizeof(K) * 8, SIMT_CUB_END) {                                              \
    return detail::sort_keys(SIMT_CUB_CALL("DeviceRadixSort::" #Keys, "d_keys_in,d_keys_out"),                      \
                             detail::room_for_items(num_items, sizeof(K)), d_keys_in, d_keys_out,                   \
                             (simt::Index)num_items, detail::RadixLess<K, descending>{begin_bit, end_bit});         \
  }                                                                                                                 \
  template <class K, detail::Count N>                                                                               \
  static cudaError_t Keys(SIMT_CUB_TEMP, DoubleBuffer<K>& d_keys, N num_items, int begin_bit = 0,                   \
                          int end_bit = sizeof(K) * 8, SIMT_CUB_END) {                                              \
    const cudaError_t error =                                                                                       \
        detail::sort_keys(SIMT_CUB_CALL("DeviceRadixSort::" #Keys, "d_keys.Current(),d_keys.Alternate()"),          \
                          detail::room_for_tiles(num_items), d_keys.Current(), d_keys.Alternate(),                  \
                          (simt::Index)num_items, detail::RadixLess<K, descending>{begin_bit, end_bit});            \
    if (d_temp_storage && !error) d_keys.selector ^= 1;                                                             \
    return error;                                                                                                   \
  }                                                                                                                 \
  template <class K, class V, detail::Count N>                                                                      \
  static cudaError_t Pairs(SIMT_CUB_TEMP, const K* d_keys_in, K* d_keys_out, const V* d_values_in, V* d_values_out, \
                           N num_items, int begin_bit = 0, int end_bit = sizeof(K) * 8, SIMT_CUB_END) {             \
    return detail::sort_pairs(                                                                                      \
        SIMT_CUB_CALL("DeviceRadixSort::" #Pairs, "d_keys_in,d_keys_out,d_values_in,d_values_out"),                 \
        detail::room_for_items(num_items, sizeof(K) + sizeof(V)), d_keys_in, d_values_in, d_keys_out, d_values_out, \
        (simt::Index)num_items, detail::RadixLess<K, descending>{begin_bit, end_bit});                              \
  }                                                                                                                 \
  template <class K, class V, detail::Count N>                                                                      \
  static cudaError_t Pairs(SIMT_CUB_TEMP, DoubleBuffer<K>& d_keys, DoubleBuffer<V>& d_values, N num_items,          \
                           int begin_bit = 0, int end_bit = sizeof(K) * 8, SIMT_CUB_END) {                          \
    const cudaError_t error = detail::sort_pairs(                                                                   \
        SIMT_CUB_CALL("DeviceRadixSort::" #Pairs,                                                                   \
                      "d_keys.Current(),d_keys.Alternate(),d_values.Current(),d_values.Alternate()"),               \
        detail::room_for_tiles(num_items), d_keys.Current(), d_values.Current(), d_keys.Alternate(),                \
        d_values.Alternate(), (simt::Index)num_items, detail::RadixLess<K, descending>{begin_bit, end_bit});        \
    if (d_temp_storage && !error) d_keys.selector ^= 1, d_values.selector ^= 1;                                     \
    return error;                                                                                                   \
  }
  SIMT_RADIX_SORT(SortKeys, SortPairs, false)
  SIMT_RADIX_SORT(SortKeysDescending, SortPairsDescending, true)
#undef SIMT_RADIX_SORT
};

struct DeviceMergeSort {
#define SIMT_MERGE_SORT(Keys, KeysCopy, Pairs, PairsCopy)                                                            \
  template <class K, detail::Count N, class Op>                                                                      \
  static cudaError_t Keys(SIMT_CUB_TEMP, K d_keys, N num_items, Op op, SIMT_CUB_END) {                               \
    return detail::sort_keys(SIMT_CUB_CALL("DeviceMergeSort::" #Keys, "d_keys,d_keys"),                              \
                             detail::room_for_items(num_items, sizeof(simt::value_of<K>)), d_keys, d_keys,           \
                             (simt::Index)num_items, op);                                                            \
  }                                                                                                                  \
  template <class K, class KOut, detail::Count N, class Op>                                                          \
  static cudaError_t KeysCopy(SIMT_CUB_TEMP, K d_input_keys, KOut d_output_keys, N num_items, Op op, SIMT_CUB_END) { \
    return detail::sort_keys(SIMT_CUB_CALL("DeviceMergeSort::" #KeysCopy, "d_input_keys,d_output_keys"),             \
                             detail::room_for_items(num_items, sizeof(simt::value_of<K>)), d_input_keys,             \
                             d_output_keys, (simt::Index)num_items, op);                                             \
  }                                                                                                                  \
  template <class K, class V, detail::Count N, class Op>                                                             \
  static cudaError_t Pairs(SIMT_CUB_TEMP, K d_keys, V d_items, N num_items, Op op, SIMT_CUB_END) {                   \
    return detail::sort_pairs(SIMT_CUB_CALL("DeviceMergeSort::" #Pairs, "d_keys,d_keys,d_items,d_items"),            \
                              detail::room_for_items(num_items, sizeof(simt::value_of<K>)), d_keys, d_items, d_keys, \
                              d_items, (simt::Index)num_items, op);                                                  \
  }                                                                                                                  \
  template <class K, class V, class KOut, class VOut, detail::Count N, class Op>                                     \
  static cudaError_t PairsCopy(SIMT_CUB_TEMP, K d_input_keys, V d_input_items, KOut d_output_keys,                   \
                               VOut d_output_items, N num_items, Op op, SIMT_CUB_END) {                              \
    return detail::sort_pairs(                                                                                       \
        SIMT_CUB_CALL("DeviceMergeSort::" #PairsCopy, "d_input_keys,d_output_keys,d_input_items,d_output_items"),    \
        detail::room_for_items(num_items, sizeof(simt::value_of<K>)), d_input_keys, d_input_items, d_output_keys,    \
        d_output_items, (simt::Index)num_items, op);                                                                 \
  }
  SIMT_MERGE_SORT(SortKeys, SortKeysCopy, SortPairs, SortPairsCopy)
  SIMT_MERGE_SORT(StableSortKeys, StableSortKeysCopy, StableSortPairs, StableSortPairsCopy)
#undef SIMT_MERGE_SORT
};

struct DeviceMerge {
  template <class A, class B, class Out, class Op = simt::Less>
  static cudaError_t MergeKeys(SIMT_CUB_TEMP, A keys_in1, int num_keys1, B keys_in2, int num_keys2, Out keys_out,
                               Op op = {}, SIMT_CUB_END) {
    auto body = [=]() mutable {
      for (simt::Index a = 0, b = 0; a + b < (simt::Index)num_keys1 + num_keys2;) {
        const bool second = a == num_keys1 || (b < num_keys2 && op(keys_in2[b], keys_in1[a]));
        const simt::Index to = a + b;
        if (second)
          keys_out[to] = keys_in2[b++];
        else
          keys_out[to] = keys_in1[a++];
      }
    };
    return detail::run(SIMT_CUB_CALL("DeviceMerge::MergeKeys", "keys_in1,keys_in2,keys_out"),
                       detail::room_for_tiles((long long)num_keys1 + num_keys2), body, keys_in1, keys_in2, keys_out);
  }
  template <class A, class VA, class B, class VB, class Out, class VOut, class Op = simt::Less>
  static cudaError_t MergePairs(SIMT_CUB_TEMP, A keys_in1, VA values_in1, int num_pairs1, B keys_in2, VB values_in2,
                                int num_pairs2, Out keys_out, VOut values_out, Op op = {}, SIMT_CUB_END) {
    auto body = [=]() mutable {
      for (simt::Index a = 0, b = 0; a + b < (simt::Index)num_pairs1 + num_pairs2;) {
        const bool second = a == num_pairs1 || (b < num_pairs2 && op(keys_in2[b], keys_in1[a]));
        const simt::Index to = a + b;
        if (second) {
          keys_out[to] = keys_in2[b];
          values_out[to] = values_in2[b++];
        } else {
          keys_out[to] = keys_in1[a];
          values_out[to] = values_in1[a++];
        }
      }
    };
    return detail::run(
        SIMT_CUB_CALL("DeviceMerge::MergePairs", "keys_in1,values_in1,keys_in2,values_in2,keys_out,values_out"),
        detail::room_for_tiles((long long)num_pairs1 + num_pairs2), body, keys_in1, values_in1, keys_in2, values_in2,
        keys_out, values_out);
  }
};

}  // namespace cub
