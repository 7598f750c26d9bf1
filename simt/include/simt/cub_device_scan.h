// cub::DeviceScan.
#pragma once

#include <simt/cub_device_call.h>

namespace cub {

struct DeviceScan {
  template <class In, class Out, detail::Count N> static cudaError_t ExclusiveSum(SIMT_CUB_TEMP, In d_in, Out d_out,
                                                                                  N num_items, SIMT_CUB_END) {
    const auto call = SIMT_CUB_CALL("DeviceScan::ExclusiveSum", "d_in,d_out");
    return scan(call, d_in, d_out, simt::Plus{}, simt::value_of<In>{}, true, false, num_items);
  }
  template <class Data, detail::Count N> static cudaError_t ExclusiveSum(SIMT_CUB_TEMP, Data d_data, N num_items,
                                                                         SIMT_CUB_END) {
    return ExclusiveSum(d_temp_storage, temp_storage_bytes, d_data, d_data, num_items, stream, caller);
  }
  template <class In, class Out, class Op, class T, detail::Count N>
  static cudaError_t ExclusiveScan(SIMT_CUB_TEMP, In d_in, Out d_out, Op op, T init, N num_items, SIMT_CUB_END) {
    return scan(SIMT_CUB_CALL("DeviceScan::ExclusiveScan", "d_in,d_out"), d_in, d_out, op, init, true, false,
                num_items);
  }
  template <class Data, class Op, class T, detail::Count N>
  static cudaError_t ExclusiveScan(SIMT_CUB_TEMP, Data d_data, Op op, T init, N num_items, SIMT_CUB_END) {
    return ExclusiveScan(d_temp_storage, temp_storage_bytes, d_data, d_data, op, init, num_items, stream, caller);
  }
  template <class In, class Out, detail::Count N> static cudaError_t InclusiveSum(SIMT_CUB_TEMP, In d_in, Out d_out,
                                                                                  N num_items, SIMT_CUB_END) {
    const auto call = SIMT_CUB_CALL("DeviceScan::InclusiveSum", "d_in,d_out");
    return scan(call, d_in, d_out, simt::Plus{}, simt::value_of<In>{}, false, true, num_items);
  }
  template <class Data, detail::Count N> static cudaError_t InclusiveSum(SIMT_CUB_TEMP, Data d_data, N num_items,
                                                                         SIMT_CUB_END) {
    return InclusiveSum(d_temp_storage, temp_storage_bytes, d_data, d_data, num_items, stream, caller);
  }
  template <class In, class Out, class Op, detail::Count N>
  static cudaError_t InclusiveScan(SIMT_CUB_TEMP, In d_in, Out d_out, Op op, N num_items, SIMT_CUB_END) {
    const auto call = SIMT_CUB_CALL("DeviceScan::InclusiveScan", "d_in,d_out");
    return scan(call, d_in, d_out, op, simt::value_of<In>{}, false, true, num_items);
  }
  template <class Data, class Op, detail::Count N>
  static cudaError_t InclusiveScan(SIMT_CUB_TEMP, Data d_data, Op op, N num_items, SIMT_CUB_END) {
    return InclusiveScan(d_temp_storage, temp_storage_bytes, d_data, d_data, op, num_items, stream, caller);
  }
  template <class In, class Out, class Op, class T, detail::Count N>
  static cudaError_t InclusiveScanInit(SIMT_CUB_TEMP, In d_in, Out d_out, Op op, T init, N num_items, SIMT_CUB_END) {
    return scan(SIMT_CUB_CALL("DeviceScan::InclusiveScanInit", "d_in,d_out"), d_in, d_out, op, init, true, true,
                num_items);
  }

  // ---- by key: anew at each key that differs from the one before ----

  template <class Keys, class In, class Out, detail::Count N, class Same = simt::Equal>
  static cudaError_t ExclusiveSumByKey(SIMT_CUB_TEMP, Keys d_keys_in, In d_values_in, Out d_values_out, N num_items,
                                       Same same = {}, SIMT_CUB_END) {
    return by_key(SIMT_CUB_CALL("DeviceScan::ExclusiveSumByKey", keyed), d_keys_in, d_values_in, d_values_out,
                  simt::Plus{}, simt::value_of<In>{}, false, num_items, same);
  }
  template <class Keys, class In, class Out, class Op, class T, detail::Count N, class Same = simt::Equal>
  static cudaError_t ExclusiveScanByKey(SIMT_CUB_TEMP, Keys d_keys_in, In d_values_in, Out d_values_out, Op op, T init,
                                        N num_items, Same same = {}, SIMT_CUB_END) {
    return by_key(SIMT_CUB_CALL("DeviceScan::ExclusiveScanByKey", keyed), d_keys_in, d_values_in, d_values_out, op,
                  init, false, num_items, same);
  }
  template <class Keys, class In, class Out, detail::Count N, class Same = simt::Equal>
  static cudaError_t InclusiveSumByKey(SIMT_CUB_TEMP, Keys d_keys_in, In d_values_in, Out d_values_out, N num_items,
                                       Same same = {}, SIMT_CUB_END) {
    return by_key(SIMT_CUB_CALL("DeviceScan::InclusiveSumByKey", keyed), d_keys_in, d_values_in, d_values_out,
                  simt::Plus{}, simt::value_of<In>{}, true, num_items, same);
  }
  template <class Keys, class In, class Out, class Op, detail::Count N, class Same = simt::Equal>
  static cudaError_t InclusiveScanByKey(SIMT_CUB_TEMP, Keys d_keys_in, In d_values_in, Out d_values_out, Op op,
                                        N num_items, Same same = {}, SIMT_CUB_END) {
    return by_key(SIMT_CUB_CALL("DeviceScan::InclusiveScanByKey", keyed), d_keys_in, d_values_in, d_values_out, op,
                  simt::value_of<In>{}, true, num_items, same);
  }

 private:
  static constexpr const char* keyed = "d_keys_in,d_values_in,d_values_out";

  template <class In, class Out, class Op, class T, class N>
  static cudaError_t scan(const detail::DeviceCall& call, In in, Out out, Op op, T init, bool has_init, bool inclusive,
                          N n) {
    using Sum = simt::result_of<Op, T, simt::value_of<In>>;
    auto body = [=]() mutable { simt::scan<Sum>(in, out, (simt::Index)n, init, has_init, inclusive, op); };
    return detail::run(call, detail::room_for_tiles(n), body, in, out);
  }
  template <class Keys, class In, class Out, class Op, class T, class N, class Same>
  static cudaError_t by_key(const detail::DeviceCall& call, Keys keys, In in, Out out, Op op, T init, bool inclusive,
                            N n, Same same) {
    using Sum = simt::result_of<Op, T, simt::value_of<In>>;
    auto body = [=]() mutable { simt::scan_by_key<Sum>(keys, in, out, (simt::Index)n, init, inclusive, same, op); };
    return detail::run(call, detail::room_for_tiles(n), body, keys, in, out);
  }
};

}  // namespace cub
