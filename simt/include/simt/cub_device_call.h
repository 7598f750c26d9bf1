// What cub's device-wide functions share: the two calls, of which the first one asks for the size of the temporary
// storage.
#pragma once

#include <limits>

#include <simt/cub_iterators.h>
#include <simt/cub_values.h>
#include <simt/sequences.h>

namespace cub {

template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

namespace detail {

template <class N>
concept Count = std::is_integral_v<N>;

struct DeviceCall {
  const char* name;
  const char* parameters;  // names of the arguments that run() gets
  void* storage;
  std::size_t& bytes;
  cudaStream_t stream;
  simt::CallSite caller;
  std::shared_ptr<const void> owner = nullptr;  // of memory that the call uses
};

inline cudaError_t refuse_storage(const DeviceCall& call, std::size_t needed) {
  char text[320];
  snprintf(text, sizeof text,
           "%s got %zu bytes of temporary storage and needs %zu. Call it first with a null pointer and the same other "
           "arguments: it returns the size then",
           call.name, call.bytes, needed);
  return simt::failed(cudaErrorInvalidValue, text);
}

// Returns whether the call only asks for the size, or fails with `error`.
inline bool is_over(const DeviceCall& call, std::size_t needed, cudaError_t& error) {
  error = cudaSuccess;
  if (!call.storage) {
    call.bytes = needed;
    return true;
  }
  if (call.bytes < needed)
    error = refuse_storage(call, needed);
  else if (const int failed = simt::sticky_error())
    error = (cudaError_t)failed;
  else if (const char* why = simt::transfer_problem(call.name, call.storage, true, nullptr, false, call.bytes))
    error = simt::failed(cudaErrorInvalidValue, why);
  return error != cudaSuccess;
}

// Runs `body` on the device. needed: bytes of temporary storage; the body does not use it.
template <class F, class... A>
cudaError_t run(const DeviceCall& call, std::size_t needed, F body, const A&... arguments) {
  cudaError_t error;
  if (is_over(call, needed, error)) return error;
  simt::call_device(call.name, call.parameters, call.stream, call.caller, call.owner, body, arguments...);
  return (cudaError_t)simt::sticky_error();
}

// Bytes of temporary storage: a part that does not depend on the items, and some per item or per tile of items.
inline std::size_t room_for_tiles(long long items) { return 1024 + (std::size_t)(items < 0 ? 0 : items) / 1024 * 16; }
inline std::size_t room_for_items(long long items, std::size_t bytes) {
  return 1024 + (std::size_t)(items < 0 ? 0 : items) * bytes;
}

#define SIMT_CUB_CALL(name, parameters) \
  ::cub::detail::DeviceCall { "cub::" name, parameters, d_temp_storage, temp_storage_bytes, stream, caller }
#define SIMT_CUB_TEMP void *d_temp_storage, std::size_t &temp_storage_bytes
#define SIMT_CUB_END cudaStream_t stream = nullptr, SIMT_CALLER

}  // namespace detail
}  // namespace cub
