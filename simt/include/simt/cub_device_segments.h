// cub::DeviceSegmentedReduce, cub::DeviceSegmentedRadixSort and cub::DeviceSegmentedSort. A segment is a range of items
// from begin_offsets[s] up to, not including, end_offsets[s].
#pragma once

#include <simt/cub_device_keys.h>
#include <simt/cub_device_reduce.h>

namespace cub {

struct DeviceSegmentedReduce {
  template <class In, class Out, class Begin, class End, detail::Count N, class Op, class T>
  static cudaError_t Reduce(SIMT_CUB_TEMP, In d_in, Out d_out, N num_segments, Begin d_begin_offsets, End d_end_offsets,
                            Op op, T init, SIMT_CUB_END) {
    return reduce(SIMT_CUB_CALL("DeviceSegmentedReduce::Reduce", names), d_in, d_out, num_segments, d_begin_offsets,
                  d_end_offsets, op, init);
  }
#define SIMT_SEGMENTED(Name, op, init)                                                                                 \
  template <class In, class Out, class Begin, class End, detail::Count N>                                              \
  static cudaError_t Name(SIMT_CUB_TEMP, In d_in, Out d_out, N num_segments, Begin d_begin_offsets, End d_end_offsets, \
                          SIMT_CUB_END) {                                                                              \
    using T = simt::value_of<In>;                                                                                      \
    return reduce(SIMT_CUB_CALL("DeviceSegmentedReduce::" #Name, names), d_in, d_out, num_segments, d_begin_offsets,   \
                  d_end_offsets, op, init);                                                                            \
  }
  SIMT_SEGMENTED(Sum, simt::Plus{}, (simt::output_value<Out, T>{}))
  SIMT_SEGMENTED(Min, cuda::minimum<>{}, detail::greatest_value<T>())
  SIMT_SEGMENTED(Max, cuda::maximum<>{}, detail::least_value<T>())
#undef SIMT_SEGMENTED
  template <class In, class Out, class Begin, class End, detail::Count N>
  static cudaError_t ArgMin(SIMT_CUB_TEMP, In d_in, Out d_out, N num_segments, Begin d_begin_offsets, End d_end_offsets,
                            SIMT_CUB_END) {
    return arg_extreme(SIMT_CUB_CALL("DeviceSegmentedReduce::ArgMin", names), d_in, d_out, num_segments,
                       d_begin_offsets, d_end_offsets, simt::Less{}, std::numeric_limits<simt::value_of<In>>::max());
  }
  template <class In, class Out, class Begin, class End, detail::Count N>
  static cudaError_t ArgMax(SIMT_CUB_TEMP, In d_in, Out d_out, N num_segments, Begin d_begin_offsets, End d_end_offsets,
                            SIMT_CUB_END) {
    return arg_extreme(SIMT_CUB_CALL("DeviceSegmentedReduce::ArgMax", names), d_in, d_out, num_segments,
                       d_begin_offsets, d_end_offsets, detail::Greater{},
                       std::numeric_limits<simt::value_of<In>>::lowest());
  }

 private:
  static constexpr const char* names = "d_in,d_out,d_begin_offsets,d_end_offsets";

  template <class In, class Out, class Begin, class End, class N, class Op, class T>
  static cudaError_t reduce(const detail::DeviceCall& call, In in, Out out, N segments, Begin begin, End end, Op op,
                            T init) {
    using Sum = simt::result_of<Op, T, simt::value_of<In>>;
    auto body = [=]() mutable {
      for (simt::Index s = 0; s < (simt::Index)segments; ++s) {
        const simt::Index from = (simt::Index)begin[s], to = (simt::Index)end[s];
        out[s] = simt::reduce<Sum>(in + from, to - from, init, op);
      }
    };
    return detail::run(call, detail::room_for_tiles(0), body, in, out, begin, end);
  }
  template <class In, class Out, class Begin, class End, class N, class More>
  static cudaError_t arg_extreme(const detail::DeviceCall& call, In in, Out out, N segments, Begin begin, End end,
                                 More more, simt::value_of<In> none) {
    auto body = [=] {
      for (simt::Index s = 0; s < (simt::Index)segments; ++s) {
        const simt::Index from = (simt::Index)begin[s], to = (simt::Index)end[s];
        simt::output_value<Out, KeyValuePair<int, simt::value_of<In>>> result{};
        simt::Index position = 1;
        result.value = none;
        if (from < to) detail::find_extreme(in + from, to - from, more, position, result.value);
        result.key = static_cast<decltype(result.key)>(position);
        out[s] = result;
      }
    };
    return detail::run(call, detail::room_for_tiles(0), body, in, out, begin, end);
  }
};

// Bits: the parameters that choose the bits of a radix sort. Items: of the size of the temporary storage.
#define SIMT_SEGMENTED_SORT(Struct, Keys, Pairs, BITS, ...)                                                            \
  template <class K, detail::Count N, detail::Count S, class Begin, class End>                                         \
  static cudaError_t Keys(SIMT_CUB_TEMP, const K* d_keys_in, K* d_keys_out, N num_items, S num_segments,               \
                          Begin d_begin_offsets, End d_end_offsets, BITS SIMT_CUB_END) {                               \
    return detail::sort_key_segments(                                                                                  \
        SIMT_CUB_CALL(Struct "::" #Keys, "d_keys_in,d_keys_out,d_begin_offsets,d_end_offsets"),                        \
        detail::room_for_items(num_items, sizeof(K)), d_keys_in, d_keys_out, (simt::Index)num_items,                   \
        (simt::Index)num_segments, d_begin_offsets, d_end_offsets, __VA_ARGS__);                                       \
  }                                                                                                                    \
  template <class K, detail::Count N, detail::Count S, class Begin, class End>                                         \
  static cudaError_t Keys(SIMT_CUB_TEMP, DoubleBuffer<K>& d_keys, N num_items, S num_segments, Begin d_begin_offsets,  \
                          End d_end_offsets, BITS SIMT_CUB_END) {                                                      \
    const cudaError_t error = Keys(d_temp_storage, temp_storage_bytes, (const K*)d_keys.Current(), d_keys.Alternate(), \
                                   num_items, num_segments, d_begin_offsets, d_end_offsets, SIMT_BITS stream, caller); \
    if (d_temp_storage && !error) d_keys.selector ^= 1;                                                                \
    return error;                                                                                                      \
  }                                                                                                                    \
  template <class K, class V, detail::Count N, detail::Count S, class Begin, class End>                                \
  static cudaError_t Pairs(SIMT_CUB_TEMP, const K* d_keys_in, K* d_keys_out, const V* d_values_in, V* d_values_out,    \
                           N num_items, S num_segments, Begin d_begin_offsets, End d_end_offsets, BITS SIMT_CUB_END) { \
    return detail::sort_pair_segments(                                                                                 \
        SIMT_CUB_CALL(Struct "::" #Pairs,                                                                              \
                      "d_keys_in,d_keys_out,d_values_in,d_values_out,d_begin_offsets,d_end_offsets"),                  \
        detail::room_for_items(num_items, sizeof(K) + sizeof(V)), d_keys_in, d_values_in, d_keys_out, d_values_out,    \
        (simt::Index)num_items, (simt::Index)num_segments, d_begin_offsets, d_end_offsets, __VA_ARGS__);               \
  }                                                                                                                    \
  template <class K, class V, detail::Count N, detail::Count S, class Begin, class End>                                \
  static cudaError_t Pairs(SIMT_CUB_TEMP, DoubleBuffer<K>& d_keys, DoubleBuffer<V>& d_values, N num_items,             \
                           S num_segments, Begin d_begin_offsets, End d_end_offsets, BITS SIMT_CUB_END) {              \
    const cudaError_t error = Pairs(d_temp_storage, temp_storage_bytes, (const K*)d_keys.Current(),                    \
                                    d_keys.Alternate(), (const V*)d_values.Current(), d_values.Alternate(), num_items, \
                                    num_segments, d_begin_offsets, d_end_offsets, SIMT_BITS stream, caller);           \
    if (d_temp_storage && !error) d_keys.selector ^= 1, d_values.selector ^= 1;                                        \
    return error;                                                                                                      \
  }

#define SIMT_BITS_COMMA ,
struct DeviceSegmentedRadixSort {
#define SIMT_BITS begin_bit SIMT_BITS_COMMA end_bit SIMT_BITS_COMMA
#define SIMT_BIT_PARAMETERS int begin_bit = 0 SIMT_BITS_COMMA int end_bit = sizeof(K) * 8 SIMT_BITS_COMMA
  SIMT_SEGMENTED_SORT("DeviceSegmentedRadixSort", SortKeys, SortPairs, SIMT_BIT_PARAMETERS,
                      detail::RadixLess<K, false>{begin_bit, end_bit})
  SIMT_SEGMENTED_SORT("DeviceSegmentedRadixSort", SortKeysDescending, SortPairsDescending, SIMT_BIT_PARAMETERS,
                      detail::RadixLess<K, true>{begin_bit, end_bit})
#undef SIMT_BIT_PARAMETERS
#undef SIMT_BITS
};

struct DeviceSegmentedSort {
#define SIMT_BITS
#define SIMT_NO_PARAMETERS
  SIMT_SEGMENTED_SORT("DeviceSegmentedSort", SortKeys, SortPairs, SIMT_NO_PARAMETERS, detail::KeyLess{})
  SIMT_SEGMENTED_SORT("DeviceSegmentedSort", SortKeysDescending, SortPairsDescending, SIMT_NO_PARAMETERS,
                      detail::KeyGreater{})
  SIMT_SEGMENTED_SORT("DeviceSegmentedSort", StableSortKeys, StableSortPairs, SIMT_NO_PARAMETERS, detail::KeyLess{})
  SIMT_SEGMENTED_SORT("DeviceSegmentedSort", StableSortKeysDescending, StableSortPairsDescending, SIMT_NO_PARAMETERS,
                      detail::KeyGreater{})
#undef SIMT_NO_PARAMETERS
#undef SIMT_BITS
};
#undef SIMT_BITS_COMMA
#undef SIMT_SEGMENTED_SORT

}  // namespace cub
