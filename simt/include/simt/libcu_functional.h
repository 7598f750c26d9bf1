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

namespace std {
using namespace ::std;
}

}  // namespace cuda
