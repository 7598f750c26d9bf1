// cub::DeviceFor, cub::DeviceTransform, cub::DeviceAdjacentDifference, cub::DeviceCopy and cub::DeviceMemcpy.
#pragma once

#include <tuple>

#include <simt/cub_device_call.h>

namespace cub {

struct DeviceFor {
  template <detail::Count N, class Op>
  static cudaError_t Bulk(N shape, Op op, SIMT_CUB_END) {
    return each(
        "cub::DeviceFor::Bulk", 0,
        [=]() mutable {
          for (N i = 0; i < shape; ++i) op(i);
        },
        stream, caller);
  }
  template <class It, detail::Count N, class Op>
  static cudaError_t ForEachN(It first, N num_items, Op op, SIMT_CUB_END) {
    return each(
        "cub::DeviceFor::ForEachN", first,
        [=]() mutable {
          for (N i = 0; i < num_items; ++i) op(first[i]);
        },
        stream, caller);
  }
  template <class It, class Op>
  static cudaError_t ForEach(It first, It last, Op op, SIMT_CUB_END) {
    return ForEachN(first, (long long)(last - first), op, stream, caller);
  }
  template <class It, detail::Count N, class Op>
  static cudaError_t ForEachCopyN(It first, N num_items, Op op, SIMT_CUB_END) {
    return each(
        "cub::DeviceFor::ForEachCopyN", first,
        [=]() mutable {
          for (N i = 0; i < num_items; ++i) {
            const simt::value_of<It> item = first[i];
            op(item);
          }
        },
        stream, caller);
  }
  template <class It, class Op>
  static cudaError_t ForEachCopy(It first, It last, Op op, SIMT_CUB_END) {
    return ForEachCopyN(first, (long long)(last - first), op, stream, caller);
  }
  // The forms with temporary storage, of which they need one byte.
  template <detail::Count N, class Op>
  static cudaError_t Bulk(SIMT_CUB_TEMP, N shape, Op op, SIMT_CUB_END) {
    return asks(d_temp_storage, temp_storage_bytes) ? cudaSuccess : Bulk(shape, op, stream, caller);
  }
  template <class It, detail::Count N, class Op>
  static cudaError_t ForEachN(SIMT_CUB_TEMP, It first, N num_items, Op op, SIMT_CUB_END) {
    return asks(d_temp_storage, temp_storage_bytes) ? cudaSuccess : ForEachN(first, num_items, op, stream, caller);
  }
  template <class It, class Op>
  static cudaError_t ForEach(SIMT_CUB_TEMP, It first, It last, Op op, SIMT_CUB_END) {
    return asks(d_temp_storage, temp_storage_bytes) ? cudaSuccess : ForEach(first, last, op, stream, caller);
  }

 private:
  static bool asks(const void* storage, std::size_t& bytes) {
    if (!storage) bytes = 1;
    return !storage;
  }
  template <class It, class F>
  static cudaError_t each(const char* name, It first, F body, cudaStream_t stream, simt::CallSite caller) {
    if (const int error = simt::sticky_error()) return (cudaError_t)error;
    simt::call_device(name, "first", stream, caller, nullptr, body, first);
    return (cudaError_t)simt::sticky_error();
  }
};

struct DeviceTransform {
  template <class... In, class Out, detail::Count N, class Op>
  static cudaError_t Transform(std::tuple<In...> inputs, Out output, N num_items, Op op, SIMT_CUB_END) {
    auto body = [=]() mutable {
      for (simt::Index i = 0; i < (simt::Index)num_items; ++i)
        output[i] = std::apply([&](const auto&... each) { return op(each[i]...); }, inputs);
    };
    if (const int error = simt::sticky_error()) return (cudaError_t)error;
    std::apply(
        [&](const auto&... each) {
          simt::call_device("cub::DeviceTransform::Transform", "output,input", stream, caller, nullptr, body, output,
                            each...);
        },
        inputs);
    return (cudaError_t)simt::sticky_error();
  }
  template <class In, class Out, detail::Count N, class Op>
  static cudaError_t Transform(In input, Out output, N num_items, Op op, SIMT_CUB_END) {
    return Transform(std::tuple<In>(input), output, num_items, op, stream, caller);
  }
};

struct DeviceAdjacentDifference {
  template <class In, class Out, class Op = std::minus<>, detail::Count N>
  static cudaError_t SubtractLeftCopy(SIMT_CUB_TEMP, In d_input, Out d_output, N num_items, Op op = {}, SIMT_CUB_END) {
    auto body = [=]() mutable {
      for (simt::Index i = (simt::Index)num_items - 1; i > 0; --i) d_output[i] = op(d_input[i], d_input[i - 1]);
      if (num_items > 0) d_output[0] = d_input[0];
    };
    return detail::run(SIMT_CUB_CALL("DeviceAdjacentDifference::SubtractLeft", "d_input,d_output"),
                       detail::room_for_tiles(num_items), body, d_input, d_output);
  }
  template <class It, class Op = std::minus<>, detail::Count N>
  static cudaError_t SubtractLeft(SIMT_CUB_TEMP, It d_input, N num_items, Op op = {}, SIMT_CUB_END) {
    return SubtractLeftCopy(d_temp_storage, temp_storage_bytes, d_input, d_input, num_items, op, stream, caller);
  }
  template <class In, class Out, class Op = std::minus<>, detail::Count N>
  static cudaError_t SubtractRightCopy(SIMT_CUB_TEMP, In d_input, Out d_output, N num_items, Op op = {}, SIMT_CUB_END) {
    auto body = [=]() mutable {
      for (simt::Index i = 0; i + 1 < (simt::Index)num_items; ++i) d_output[i] = op(d_input[i], d_input[i + 1]);
      if (num_items > 0) d_output[num_items - 1] = d_input[num_items - 1];
    };
    return detail::run(SIMT_CUB_CALL("DeviceAdjacentDifference::SubtractRight", "d_input,d_output"),
                       detail::room_for_tiles(num_items), body, d_input, d_output);
  }
  template <class It, class Op = std::minus<>, detail::Count N>
  static cudaError_t SubtractRight(SIMT_CUB_TEMP, It d_input, N num_items, Op op = {}, SIMT_CUB_END) {
    return SubtractRightCopy(d_temp_storage, temp_storage_bytes, d_input, d_input, num_items, op, stream, caller);
  }
};

struct DeviceCopy {
  template <class In, class Out, class Sizes, detail::Count N>
  static cudaError_t Batched(SIMT_CUB_TEMP, In input_it, Out output_it, Sizes sizes, N num_ranges, SIMT_CUB_END) {
    auto body = [=] {
      for (simt::Index r = 0; r < (simt::Index)num_ranges; ++r) {
        auto from = input_it[r];
        auto to = output_it[r];
        for (simt::Index i = 0; i < (simt::Index)sizes[r]; ++i) to[i] = from[i];
      }
    };
    return detail::run(SIMT_CUB_CALL("DeviceCopy::Batched", "input_it,output_it,sizes"),
                       detail::room_for_tiles(num_ranges), body, input_it, output_it, sizes);
  }
};
struct DeviceMemcpy {
  template <class In, class Out, class Sizes, detail::Count N>
  static cudaError_t Batched(SIMT_CUB_TEMP, In input_buffer_it, Out output_buffer_it, Sizes buffer_sizes, N num_buffers,
                             SIMT_CUB_END) {
    auto body = [=] {
      for (simt::Index r = 0; r < (simt::Index)num_buffers; ++r) {
        const auto* from = (const unsigned char*)input_buffer_it[r];
        auto* to = (unsigned char*)output_buffer_it[r];
        for (simt::Index i = 0; i < (simt::Index)buffer_sizes[r]; ++i) to[i] = from[i];
      }
    };
    return detail::run(SIMT_CUB_CALL("DeviceMemcpy::Batched", "input_buffer_it,output_buffer_it,buffer_sizes"),
                       detail::room_for_tiles(num_buffers), body, input_buffer_it, output_buffer_it, buffer_sizes);
  }
};

}  // namespace cub
