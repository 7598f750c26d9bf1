// thrust's function objects, and placeholders such as _1 + _2.
#pragma once

#include <functional>
#include <utility>

#include <simt/libcu_functional.h>
#include <simt/thrust_core.h>

namespace thrust {

using ::cuda::maximum;
using ::cuda::minimum;
using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::not_equal_to;
using std::not_fn;
using std::plus;

template <class T = void>
struct identity {
  constexpr const T& operator()(const T& value) const { return value; }
};
template <>
struct identity<void> {
  template <class T> constexpr T&& operator()(T&& value) const { return std::forward<T>(value); }
};
template <class T = void>
struct square {
  constexpr T operator()(const T& value) const { return value * value; }
};
template <>
struct square<void> {
  template <class T> constexpr auto operator()(const T& value) const { return value * value; }
};
template <class A = void, class B = void>
struct project1st {
  constexpr const A& operator()(const A& a, const B&) const { return a; }
};
template <class A = void, class B = void>
struct project2nd {
  constexpr const B& operator()(const A&, const B& b) const { return b; }
};
// Bases that functors of old programs have. CUDA 13 has them no longer.
template <class A, class R>
struct unary_function {
  using argument_type = A;
  using result_type = R;
};
template <class A, class B, class R>
struct binary_function {
  using first_argument_type = A;
  using second_argument_type = B;
  using result_type = R;
};

// ---- placeholders ----

namespace detail {
struct ActorBase {};
template <class F>
struct Actor : ActorBase {
  F function;
  constexpr explicit Actor(F function) : function(function) {}
  template <class... A> constexpr auto operator()(A&&... arguments) const {
    return function(std::forward<A>(arguments)...);
  }
};
template <std::size_t n>
struct Argument {
  template <class... A> constexpr auto operator()(A&&... arguments) const {
    return std::get<n>(std::forward_as_tuple(arguments...));
  }
};
template <class T, class... A>
constexpr auto value_in(const T& part, const A&... arguments) {
  if constexpr (std::is_base_of_v<ActorBase, T>)
    return part(arguments...);
  else
    return part;
}
}  // namespace detail
namespace placeholders {
inline constexpr detail::Actor<detail::Argument<0>> _1{{}};
inline constexpr detail::Actor<detail::Argument<1>> _2{{}};
inline constexpr detail::Actor<detail::Argument<2>> _3{{}};
}  // namespace placeholders
namespace detail {
#define SIMT_ACTOR(op)                                                                               \
  template <class A, class B>                                                                        \
    requires(std::is_base_of_v<ActorBase, A> || std::is_base_of_v<ActorBase, B>)                     \
  constexpr auto operator op(const A& a, const B& b) {                                               \
    return Actor([a, b](const auto&... all) { return value_in(a, all...) op value_in(b, all...); }); \
  }
SIMT_ACTOR(+)
SIMT_ACTOR(-)
SIMT_ACTOR(*)
SIMT_ACTOR(/)
SIMT_ACTOR(%)
SIMT_ACTOR(&)
SIMT_ACTOR(|)
SIMT_ACTOR(^)
SIMT_ACTOR(<<)
SIMT_ACTOR(>>)
SIMT_ACTOR(==)
SIMT_ACTOR(!=)
SIMT_ACTOR(<)
SIMT_ACTOR(>)
SIMT_ACTOR(<=)
SIMT_ACTOR(>=)
SIMT_ACTOR(&&)
SIMT_ACTOR(||)
#undef SIMT_ACTOR
#define SIMT_ACTOR(op)                                                        \
  template <class F>                                                          \
  constexpr auto operator op(const Actor<F>& a) {                             \
    return Actor([a](const auto&... all) { return op value_in(a, all...); }); \
  }
SIMT_ACTOR(-)
SIMT_ACTOR(!)
SIMT_ACTOR(~)
#undef SIMT_ACTOR
}  // namespace detail

}  // namespace thrust
