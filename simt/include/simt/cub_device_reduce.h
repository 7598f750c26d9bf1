// cub::DeviceReduce, and DeviceRunLengthEncode.
#pragma once

#include <simt/cub_device_call.h>

namespace cub {

namespace detail {
template <class T>
constexpr T least_value() {
  if constexpr (std::numeric_limits<T>::has_infinity)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}
template <class T>
constexpr T greatest_value() {
  if constexpr (std::numeric_limits<T>::has_infinity)
    return std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::max();
}

// The smallest or largest item and its position; of equal ones the first.
template <class In, class More>
void find_extreme(In in, simt::Index n, More more, simt::Index& position, simt::value_of<In>& value) {
  position = 0;
  value = in[0];
  for (simt::Index i = 1; i < n; ++i) {
    const simt::value_of<In> item = in[i];
    if (!more(item, value)) continue;
    position = i;
    value = item;
  }
}
struct Greater {
  template <class A, class B> bool operator()(const A& a, const B& b) const { return b < a; }
};

template <class In, class Out, class N, class More>
cudaError_t arg_extreme(const DeviceCall& call, In in, Out out, N n, More more, simt::value_of<In> none) {
  auto body = [=] {
    using Pair = simt::output_value<Out, KeyValuePair<int, simt::value_of<In>>>;
    simt::Index position;
    simt::value_of<In> value;
    Pair result{};
    result.key = 1;
    result.value = none;
    if (n > 0) {
      find_extreme(in, (simt::Index)n, more, position, value);
      result.key = static_cast<decltype(result.key)>(position);
      result.value = value;
    }
    *out = result;
  };
  return run(call, room_for_tiles(0), body, in, out);
}
template <class In, class Out, class Position, class N, class More>
cudaError_t arg_extreme_apart(const DeviceCall& call, In in, Out out, Position position_out, N n, More more) {
  auto body = [=] {
    if (n <= 0) return;
    simt::Index position;
    simt::value_of<In> value;
    find_extreme(in, (simt::Index)n, more, position, value);
    *out = value;
    *position_out = static_cast<simt::output_value<Position, long long>>(position);
  };
  return run(call, room_for_tiles(0), body, in, out, position_out);
}
}  // namespace detail

struct DeviceReduce {
  template <class In, class Out, detail::Count N, class Op, class T>
  static cudaError_t Reduce(SIMT_CUB_TEMP, In d_in, Out d_out, N num_items, Op op, T init, SIMT_CUB_END) {
    return reduce(SIMT_CUB_CALL("DeviceReduce::Reduce", "d_in,d_out"), d_in, d_out, num_items, op, init);
  }
  template <class In, class Out, detail::Count N> static cudaError_t Sum(SIMT_CUB_TEMP, In d_in, Out d_out, N num_items,
                                                                         SIMT_CUB_END) {
    using T = simt::output_value<Out, simt::value_of<In>>;
    return reduce(SIMT_CUB_CALL("DeviceReduce::Sum", "d_in,d_out"), d_in, d_out, num_items, simt::Plus{}, T{});
  }
  template <class In, class Out, detail::Count N> static cudaError_t Min(SIMT_CUB_TEMP, In d_in, Out d_out, N num_items,
                                                                         SIMT_CUB_END) {
    return reduce(SIMT_CUB_CALL("DeviceReduce::Min", "d_in,d_out"), d_in, d_out, num_items, cuda::minimum<>{},
                  detail::greatest_value<simt::value_of<In>>());
  }
  template <class In, class Out, detail::Count N> static cudaError_t Max(SIMT_CUB_TEMP, In d_in, Out d_out, N num_items,
                                                                         SIMT_CUB_END) {
    return reduce(SIMT_CUB_CALL("DeviceReduce::Max", "d_in,d_out"), d_in, d_out, num_items, cuda::maximum<>{},
                  detail::least_value<simt::value_of<In>>());
  }
  template <class In, class Out, detail::Count N> static cudaError_t ArgMin(SIMT_CUB_TEMP, In d_in, Out d_out,
                                                                            N num_items, SIMT_CUB_END) {
    return detail::arg_extreme(SIMT_CUB_CALL("DeviceReduce::ArgMin", "d_in,d_out"), d_in, d_out, num_items,
                               simt::Less{}, std::numeric_limits<simt::value_of<In>>::max());
  }
  template <class In, class Out, class Position, detail::Count N>
  static cudaError_t ArgMin(SIMT_CUB_TEMP, In d_in, Out d_min_out, Position d_index_out, N num_items, SIMT_CUB_END) {
    return detail::arg_extreme_apart(SIMT_CUB_CALL("DeviceReduce::ArgMin", "d_in,d_min_out,d_index_out"), d_in,
                                     d_min_out, d_index_out, num_items, simt::Less{});
  }
  template <class In, class Out, detail::Count N> static cudaError_t ArgMax(SIMT_CUB_TEMP, In d_in, Out d_out,
                                                                            N num_items, SIMT_CUB_END) {
    return detail::arg_extreme(SIMT_CUB_CALL("DeviceReduce::ArgMax", "d_in,d_out"), d_in, d_out, num_items,
                               detail::Greater{}, std::numeric_limits<simt::value_of<In>>::lowest());
  }
  template <class In, class Out, class Position, detail::Count N>
  static cudaError_t ArgMax(SIMT_CUB_TEMP, In d_in, Out d_max_out, Position d_index_out, N num_items, SIMT_CUB_END) {
    return detail::arg_extreme_apart(SIMT_CUB_CALL("DeviceReduce::ArgMax", "d_in,d_max_out,d_index_out"), d_in,
                                     d_max_out, d_index_out, num_items, detail::Greater{});
  }
  template <class In, class Out, detail::Count N, class Op, class Map, class T>
  static cudaError_t TransformReduce(SIMT_CUB_TEMP, In d_in, Out d_out, N num_items, Op op, Map map, T init,
                                     SIMT_CUB_END) {
    TransformInputIterator<std::decay_t<std::invoke_result_t<Map&, simt::value_of<In>>>, Map, In> mapped(d_in, map);
    return reduce(SIMT_CUB_CALL("DeviceReduce::TransformReduce", "d_in,d_out"), mapped, d_out, num_items, op, init);
  }
  template <class Keys, class KeysOut, class In, class Out, class Runs, class Op, detail::Count N>
  static cudaError_t ReduceByKey(SIMT_CUB_TEMP, Keys d_keys_in, KeysOut d_unique_out, In d_values_in,
                                 Out d_aggregates_out, Runs d_num_runs_out, Op op, N num_items, SIMT_CUB_END) {
    auto body = [=]() mutable {
      using T = std::decay_t<std::invoke_result_t<Op&, simt::value_of<In>, simt::value_of<In>>>;
      *d_num_runs_out = static_cast<simt::output_value<Runs, long long>>(simt::reduce_by_key<T>(
          d_keys_in, d_values_in, d_unique_out, d_aggregates_out, (simt::Index)num_items, simt::Equal{}, op));
    };
    return detail::run(SIMT_CUB_CALL("DeviceReduce::ReduceByKey",
                                     "d_keys_in,d_unique_out,d_values_in,d_aggregates_out,d_num_runs_out"),
                       detail::room_for_tiles(num_items), body, d_keys_in, d_unique_out, d_values_in, d_aggregates_out,
                       d_num_runs_out);
  }

 private:
  template <class In, class Out, class N, class Op, class T>
  static cudaError_t reduce(const detail::DeviceCall& call, In in, Out out, N n, Op op, T init) {
    using Sum = simt::result_of<Op, T, simt::value_of<In>>;
    auto body = [=]() mutable { *out = simt::reduce<Sum>(in, (simt::Index)n, init, op); };
    return detail::run(call, detail::room_for_tiles(n < 4096 ? n : 4096), body, in, out);
  }
};

struct DeviceRunLengthEncode {
  template <class In, class Out, class Lengths, class Runs, detail::Count N>
  static cudaError_t Encode(SIMT_CUB_TEMP, In d_in, Out d_unique_out, Lengths d_counts_out, Runs d_num_runs_out,
                            N num_items, SIMT_CUB_END) {
    auto body = [=] {
      using Length = simt::output_value<Lengths, int>;
      *d_num_runs_out = static_cast<simt::output_value<Runs, long long>>(
          simt::reduce_by_key<Length>(d_in, ConstantInputIterator<Length>(1), d_unique_out, d_counts_out,
                                      (simt::Index)num_items, simt::Equal{}, simt::Plus{}));
    };
    return detail::run(SIMT_CUB_CALL("DeviceRunLengthEncode::Encode", "d_in,d_unique_out,d_counts_out,d_num_runs_out"),
                       detail::room_for_tiles(num_items), body, d_in, d_unique_out, d_counts_out, d_num_runs_out);
  }
  template <class In, class Offsets, class Lengths, class Runs, detail::Count N>
  static cudaError_t NonTrivialRuns(SIMT_CUB_TEMP, In d_in, Offsets d_offsets_out, Lengths d_lengths_out,
                                    Runs d_num_runs_out, N num_items, SIMT_CUB_END) {
    auto body = [=] {
      simt::Index runs = 0;
      for (simt::Index i = 0, first = 0; i < (simt::Index)num_items; first = i) {
        const simt::value_of<In> value = d_in[i];
        for (++i; i < (simt::Index)num_items && value == d_in[i];) ++i;
        if (i - first < 2) continue;
        d_offsets_out[runs] = static_cast<simt::output_value<Offsets, long long>>(first);
        d_lengths_out[runs++] = static_cast<simt::output_value<Lengths, long long>>(i - first);
      }
      *d_num_runs_out = static_cast<simt::output_value<Runs, long long>>(runs);
    };
    return detail::run(
        SIMT_CUB_CALL("DeviceRunLengthEncode::NonTrivialRuns", "d_in,d_offsets_out,d_lengths_out,d_num_runs_out"),
        detail::room_for_tiles(num_items), body, d_in, d_offsets_out, d_lengths_out, d_num_runs_out);
  }
};

}  // namespace cub
