// cub::DeviceSelect and cub::DevicePartition.
#pragma once

#include <simt/cub_device_call.h>

namespace cub {

struct DeviceSelect {
  template <class In, class Flags, class Out, class Selected, detail::Count N>
  static cudaError_t Flagged(SIMT_CUB_TEMP, In d_in, Flags d_flags, Out d_out, Selected d_num_selected_out, N num_items,
                             SIMT_CUB_END) {
    auto keep = [=](const auto&, simt::Index i) { return (bool)d_flags[i]; };
    return select(SIMT_CUB_CALL("DeviceSelect::Flagged", "d_in,d_flags,d_out,d_num_selected_out"), d_in, d_flags, d_out,
                  d_num_selected_out, num_items, keep);
  }
  template <class Data, class Flags, class Selected, detail::Count N>
  static cudaError_t Flagged(SIMT_CUB_TEMP, Data d_data, Flags d_flags, Selected d_num_selected_out, N num_items,
                             SIMT_CUB_END) {
    return Flagged(d_temp_storage, temp_storage_bytes, d_data, d_flags, d_data, d_num_selected_out, num_items, stream,
                   caller);
  }
  template <class In, class Out, class Selected, detail::Count N, class Op>
  static cudaError_t If(SIMT_CUB_TEMP, In d_in, Out d_out, Selected d_num_selected_out, N num_items, Op op,
                        SIMT_CUB_END) {
    auto keep = [=](const auto& item, simt::Index) mutable { return (bool)op(item); };
    return select(SIMT_CUB_CALL("DeviceSelect::If", "d_in,,d_out,d_num_selected_out"), d_in, 0, d_out,
                  d_num_selected_out, num_items, keep);
  }
  template <class Data, class Selected, detail::Count N, class Op>
  static cudaError_t If(SIMT_CUB_TEMP, Data d_data, Selected d_num_selected_out, N num_items, Op op, SIMT_CUB_END) {
    return If(d_temp_storage, temp_storage_bytes, d_data, d_data, d_num_selected_out, num_items, op, stream, caller);
  }
  template <class In, class Flags, class Out, class Selected, detail::Count N, class Op>
  static cudaError_t FlaggedIf(SIMT_CUB_TEMP, In d_in, Flags d_flags, Out d_out, Selected d_num_selected_out,
                               N num_items, Op op, SIMT_CUB_END) {
    auto keep = [=](const auto&, simt::Index i) mutable { return (bool)op(d_flags[i]); };
    return select(SIMT_CUB_CALL("DeviceSelect::FlaggedIf", "d_in,d_flags,d_out,d_num_selected_out"), d_in, d_flags,
                  d_out, d_num_selected_out, num_items, keep);
  }
  template <class In, class Out, class Selected, detail::Count N>
  static cudaError_t Unique(SIMT_CUB_TEMP, In d_in, Out d_out, Selected d_num_selected_out, N num_items, SIMT_CUB_END) {
    auto body = [=] {
      *d_num_selected_out = static_cast<simt::output_value<Selected, long long>>(
          simt::unique(d_in, ConstantInputIterator<char>(), d_out, DiscardOutputIterator<>(), (simt::Index)num_items,
                       simt::Equal{}));
    };
    return detail::run(SIMT_CUB_CALL("DeviceSelect::Unique", "d_in,d_out,d_num_selected_out"),
                       detail::room_for_tiles(num_items), body, d_in, d_out, d_num_selected_out);
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Selected, detail::Count N,
            class Same = simt::Equal>
  static cudaError_t UniqueByKey(SIMT_CUB_TEMP, Keys d_keys_in, Values d_values_in, KeysOut d_keys_out,
                                 ValuesOut d_values_out, Selected d_num_selected_out, N num_items, Same same = {},
                                 SIMT_CUB_END) {
    auto body = [=]() mutable {
      *d_num_selected_out = static_cast<simt::output_value<Selected, long long>>(
          simt::unique(d_keys_in, d_values_in, d_keys_out, d_values_out, (simt::Index)num_items, same));
    };
    return detail::run(
        SIMT_CUB_CALL("DeviceSelect::UniqueByKey", "d_keys_in,d_values_in,d_keys_out,d_values_out,d_num_selected_out"),
        detail::room_for_tiles(num_items), body, d_keys_in, d_values_in, d_keys_out, d_values_out, d_num_selected_out);
  }
  template <class Keys, class Values, class KeysOut, class ValuesOut, class Selected, detail::Count N>
  static cudaError_t UniqueByKey(SIMT_CUB_TEMP, Keys d_keys_in, Values d_values_in, KeysOut d_keys_out,
                                 ValuesOut d_values_out, Selected d_num_selected_out, N num_items, cudaStream_t stream,
                                 SIMT_CALLER) {
    return UniqueByKey(d_temp_storage, temp_storage_bytes, d_keys_in, d_values_in, d_keys_out, d_values_out,
                       d_num_selected_out, num_items, simt::Equal{}, stream, caller);
  }

 private:
  template <class In, class Flags, class Out, class Selected, class N, class Keep>
  static cudaError_t select(const detail::DeviceCall& call, In in, Flags flags, Out out, Selected selected, N n,
                            Keep keep) {
    auto body = [=] {
      *selected = static_cast<simt::output_value<Selected, long long>>(simt::select(in, out, (simt::Index)n, keep));
    };
    return detail::run(call, detail::room_for_tiles(n), body, in, flags, out, selected);
  }
};

// The selected items come first; the others follow, the last one first.
struct DevicePartition {
  template <class In, class Flags, class Out, class Selected, detail::Count N>
  static cudaError_t Flagged(SIMT_CUB_TEMP, In d_in, Flags d_flags, Out d_out, Selected d_num_selected_out, N num_items,
                             SIMT_CUB_END) {
    auto keep = [=](const auto&, simt::Index i) { return (bool)d_flags[i]; };
    return partition(SIMT_CUB_CALL("DevicePartition::Flagged", "d_in,d_flags,d_out,d_num_selected_out"), d_in, d_flags,
                     d_out, d_num_selected_out, num_items, keep);
  }
  template <class In, class Out, class Selected, detail::Count N, class Op>
  static cudaError_t If(SIMT_CUB_TEMP, In d_in, Out d_out, Selected d_num_selected_out, N num_items, Op op,
                        SIMT_CUB_END) {
    auto keep = [=](const auto& item, simt::Index) mutable { return (bool)op(item); };
    return partition(SIMT_CUB_CALL("DevicePartition::If", "d_in,,d_out,d_num_selected_out"), d_in, 0, d_out,
                     d_num_selected_out, num_items, keep);
  }
  // Three parts: d_num_selected_out gets the sizes of the first two.
  template <class In, class First, class Second, class Rest, class Selected, detail::Count N, class Op1, class Op2>
  static cudaError_t If(SIMT_CUB_TEMP, In d_in, First d_first_part_out, Second d_second_part_out, Rest d_unselected_out,
                        Selected d_num_selected_out, N num_items, Op1 op_1, Op2 op_2, SIMT_CUB_END) {
    auto body = [=]() mutable {
      simt::Index first = 0, second = 0, rest = 0;
      for (simt::Index i = 0; i < (simt::Index)num_items; ++i) {
        const simt::value_of<In> item = d_in[i];
        if (op_1(item))
          d_first_part_out[first++] = item;
        else if (op_2(item))
          d_second_part_out[second++] = item;
        else
          d_unselected_out[rest++] = item;
      }
      d_num_selected_out[0] = static_cast<simt::output_value<Selected, long long>>(first);
      d_num_selected_out[1] = static_cast<simt::output_value<Selected, long long>>(second);
    };
    return detail::run(SIMT_CUB_CALL("DevicePartition::If",
                                     "d_in,d_first_part_out,d_second_part_out,d_unselected_out,d_num_selected_out"),
                       detail::room_for_tiles(num_items), body, d_in, d_first_part_out, d_second_part_out,
                       d_unselected_out, d_num_selected_out);
  }

 private:
  template <class In, class Flags, class Out, class Selected, class N, class Keep>
  static cudaError_t partition(const detail::DeviceCall& call, In in, Flags flags, Out out, Selected selected, N n,
                               Keep keep) {
    auto body = [=]() mutable {
      simt::Index kept = 0, rest = 0;
      for (simt::Index i = 0; i < (simt::Index)n; ++i) {
        const simt::value_of<In> item = in[i];
        if (keep(item, i))
          out[kept++] = item;
        else
          out[(simt::Index)n - ++rest] = item;
      }
      *selected = static_cast<simt::output_value<Selected, long long>>(kept);
    };
    return detail::run(call, detail::room_for_tiles(n), body, in, flags, out, selected);
  }
};

}  // namespace cub
