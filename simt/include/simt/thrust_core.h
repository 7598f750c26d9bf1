// What thrust's algorithms share: execution policies, on which system an iterator is, errors, and running on a system.
#pragma once

#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include <simt/device_call.h>
#include <simt/sequences.h>

#define THRUST_VERSION 300000
#define THRUST_MAJOR_VERSION 3
#define THRUST_MINOR_VERSION 0
#define THRUST_SUBMINOR_VERSION 0
#define THRUST_PATCH_NUMBER 0

namespace thrust {

// ---- tuples and pairs, which are the C++ library's ----

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::swap;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;
template <class T> inline constexpr std::size_t tuple_size_v = std::tuple_size_v<T>;

// ---- errors ----

struct error_category {
  const char* name() const { return "cuda"; }
};
inline const error_category& cuda_category() {
  static const error_category category;
  return category;
}
struct error_code {
  int number = 0;
  int value() const { return number; }
  std::string message() const { return cudaGetErrorString((cudaError_t)number); }
};
class system_error : public std::runtime_error {
 public:
  system_error(int code, const error_category&, const std::string& what = "")
      : std::runtime_error(what + (what.empty() ? "" : ": ") + cudaGetErrorString((cudaError_t)code)), code_{code} {}
  const error_code& code() const { return code_; }

 private:
  error_code code_;
};
namespace system {
using thrust::cuda_category;
using thrust::error_category;
using thrust::error_code;
using thrust::system_error;
}  // namespace system

// ---- execution policies ----

namespace detail {
struct PolicyBase {};
template <class P>
concept Policy = std::is_base_of_v<PolicyBase, std::remove_cvref_t<P>>;

struct HostPolicy : PolicyBase {
  template <class Allocator> HostPolicy operator()(const Allocator&) const { return {}; }
};
struct DevicePolicy : PolicyBase {
  cudaStream_t stream = nullptr;
  bool waits = true;
  DevicePolicy on(cudaStream_t own) const {
    DevicePolicy policy = *this;
    policy.stream = own;
    return policy;
  }
  // Of a memory resource for temporary storage, for which simt has no use.
  template <class Allocator> DevicePolicy operator()(const Allocator&) const { return *this; }
};
constexpr DevicePolicy without_waiting() {
  DevicePolicy policy;
  policy.waits = false;
  return policy;
}

// Where an algorithm runs.
template <bool device>
struct Place {
  cudaStream_t stream = nullptr;
  bool waits = true;
  simt::CallSite caller{};
  std::shared_ptr<const void> owner = nullptr;  // of memory that the algorithm uses
};
inline Place<true> place_of(const DevicePolicy& policy, simt::CallSite caller) {
  return {policy.stream, policy.waits, caller, nullptr};
}
inline Place<false> place_of(const HostPolicy&, simt::CallSite caller) { return {nullptr, true, caller, nullptr}; }

// The system of an argument: 0 for none in particular, 1 for the host, 2 for the device.
template <class T>
constexpr int system_of() {
  if constexpr (requires { T::simt_system; })
    return T::simt_system;
  else
    return std::input_or_output_iterator<T> ? 1 : 0;
}
template <class... A>
Place<((system_of<A>() == 2) || ...)> find_place(simt::CallSite caller, const A&...) {
  return {nullptr, true, caller, nullptr};
}

// What a kernel uses in the place of an iterator of the host: a pointer for a device_ptr, also inside of others.
template <class T>
auto unwrap(const T& argument) {
  if constexpr (requires { argument.simt_unwrapped(); })
    return argument.simt_unwrapped();
  else
    return argument;
}
template <class T>
using unwrapped = decltype(unwrap(std::declval<const T&>()));

inline void check_error(const char* name) {
  if (const int error = simt::sticky_error()) throw system_error(error, cuda_category(), name);
}

// Calls f with the arguments: in a kernel of its own if the place is the device and the caller is the host.
template <bool device, class F, class... A>
auto run(const Place<device>& place, const char* name, const char* parameters, F f, const A&... arguments) {
  if constexpr (!device) {
    return f(arguments...);
  } else {
    using R = decltype(f(unwrap(arguments)...));
    if (simt::in_kernel()) return f(unwrap(arguments)...);
    check_error(name);
    if constexpr (std::is_void_v<R>) {
      simt::call_device(
          name, parameters, place.stream, place.caller, place.owner,
          [f, ... all = unwrap(arguments)]() mutable { f(all...); }, arguments...);
      if (place.waits) simt::synchronize();
      check_error(name);
    } else {
      // The result is not there before the launch of the graph.
      if (const int error = simt::refuse_captured(place.stream)) throw system_error(error, cuda_category(), name);
      const simt::Scratch<R> result(1);
      simt::call_device(
          name, parameters, place.stream, place.caller, place.owner,
          [f, to = result.pointer(), ... all = unwrap(arguments)]() mutable { ::new ((void*)to) R(f(all...)); },
          arguments...);
      simt::synchronize();
      check_error(name);
      return result.get();
    }
  }
}

// Calls f(room, place) with room for n items.
template <class T, bool device, class F>
auto with_room(const Place<device>& place, simt::Index n, F f) {
  if constexpr (device) {
    if (!simt::in_kernel()) {
      auto room = simt::make_scratch<T>((std::size_t)n);
      Place<device> own = place;
      own.owner = room;
      return f(room->pointer(), own);
    }
  }
  struct Heap {
    T* items;
    explicit Heap(simt::Index n) : items(new T[(std::size_t)n]) {}
    ~Heap() { delete[] items; }
  } heap(n);
  return f(heap.items, place);
}

#define SIMT_LIST(...) __VA_ARGS__
// Defines an algorithm with and without a policy, by detail::name(place, arguments).
#define SIMT_THRUST(name, TEMPLATE, PARAMETERS, ARGUMENTS)                                     \
  template <SIMT_LIST TEMPLATE>                                                                \
  auto name(SIMT_LIST PARAMETERS, SIMT_CALLER) {                                               \
    return detail::name(detail::find_place(caller, SIMT_LIST ARGUMENTS), SIMT_LIST ARGUMENTS); \
  }                                                                                            \
  template <detail::Policy SimtPolicy, SIMT_LIST TEMPLATE>                                     \
  auto name(const SimtPolicy& policy, SIMT_LIST PARAMETERS, SIMT_CALLER) {                     \
    return detail::name(detail::place_of(policy, caller), SIMT_LIST ARGUMENTS);                \
  }

}  // namespace detail

inline constexpr detail::HostPolicy host{};
inline constexpr detail::HostPolicy seq{};
inline constexpr detail::DevicePolicy device{};
namespace cuda {
inline constexpr detail::DevicePolicy par{};
inline constexpr detail::DevicePolicy par_nosync = detail::without_waiting();
}  // namespace cuda
namespace cpp {
inline constexpr detail::HostPolicy par{};
}
namespace omp {
inline constexpr detail::HostPolicy par{};
}
namespace system::cuda {
using thrust::cuda::par;
using thrust::cuda::par_nosync;
}  // namespace system::cuda

struct host_system_tag {};
struct device_system_tag {};
struct any_system_tag {};
template <class It>
struct iterator_system {
  using type = std::conditional_t<detail::system_of<It>() == 2, device_system_tag,
                                  std::conditional_t<detail::system_of<It>() == 1, host_system_tag, any_system_tag>>;
};
template <class It>
struct iterator_value {
  using type = typename std::iterator_traits<It>::value_type;
};
template <class It>
struct iterator_reference {
  using type = typename std::iterator_traits<It>::reference;
};
template <class It>
struct iterator_pointer {
  using type = typename std::iterator_traits<It>::pointer;
};
template <class It>
struct iterator_difference {
  using type = typename std::iterator_traits<It>::difference_type;
};
template <class It>
struct iterator_traits : std::iterator_traits<It> {};
template <class It> using iterator_value_t = typename iterator_value<It>::type;
template <class It> using iterator_reference_t = typename iterator_reference<It>::type;
template <class It> using iterator_difference_t = typename iterator_difference<It>::type;

template <class It>
auto distance(It first, It last) {
  return last - first;
}
template <class It, class N>
void advance(It& it, N n) {
  it += n;
}
template <class It>
It next(It it, std::ptrdiff_t n = 1) {
  return it + n;
}
template <class It>
It prev(It it, std::ptrdiff_t n = 1) {
  return it - n;
}

}  // namespace thrust
