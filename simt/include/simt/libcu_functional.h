// cuda::maximum and cuda::minimum; cuda::std's functors are the C++ library's own.
#pragma once

#include <functional>

#include <simt/runtime.h>

namespace cuda {

template <class T = void>
struct maximum {
  SIMT_INLINE constexpr T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
template <class T = void>
struct minimum {
  SIMT_INLINE constexpr T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
template <>
struct maximum<void> {
  template <class A, class B> SIMT_INLINE constexpr auto operator()(const A& a, const B& b) const {
    return a < b ? b : a;
  }
};
template <>
struct minimum<void> {
  template <class A, class B> SIMT_INLINE constexpr auto operator()(const A& a, const B& b) const {
    return b < a ? b : a;
  }
};

// A function with a return type that the host knows too.
template <class R, class F>
struct ReturnType {
  F function;
  template <class... A> SIMT_INLINE constexpr R operator()(A&&... arguments) const {
    return function(static_cast<A&&>(arguments)...);
  }
};
template <class R, class F>
constexpr ReturnType<R, F> proclaim_return_type(F function) {
  return {function};
}

namespace std {
using namespace ::std;
}

}  // namespace cuda
