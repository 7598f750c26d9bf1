// Calls a compiled function from Python: a small variant, conversions to and from C++ types, a table of functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifndef SIMT_API
#define SIMT_API __attribute__((visibility("default")))
#endif

namespace simt {

// What is only declared here is in src/process/values.cpp, compiled once and linked into every extension: each of a
// submission's units would compile it again.

// A value that is passed between Python and C++.
struct Value {
  enum class Kind : unsigned char { none, tensor, integer, real, boolean, text, list, dtype, device };
  Kind kind = Kind::none;
  at::Tensor tensor;
  long long integer = 0;  // also a dtype's ScalarType and a boolean
  double real = 0;
  std::string text;  // also a device's name
  std::vector<Value> list;
  bool is_tuple = false;

  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
};

// An argument of the wrong type; becomes Python's TypeError.
struct WrongType : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void wrong_type(const char* wanted, const Value& value);
[[noreturn]] void wrong_length(const char* wanted, std::size_t length, const Value& value);
// Within its handler: throws a WrongType again, as one of this argument, counted from 1; 0: as it is.
[[noreturn]] void wrong_argument(std::size_t number, const WrongType& error);

long long get_integer(const Value& v, long long lowest, long long highest);
template <class T>
T get_real(const Value& v);  // of float, double and long double

template <class T, class = void>
struct From {  // Value -> T
  static_assert(sizeof(T) == 0,
                "Python can pass tensors, numbers, bools, strings, dtypes, devices, and lists and optionals of them");
  static T get(const Value&);
};

template <>
struct From<at::Tensor> {
  static at::Tensor get(const Value& v);
};
template <>
struct From<bool> {
  static bool get(const Value& v);
};
template <>
struct From<std::string> {
  static std::string get(const Value& v);
};
template <>
struct From<at::ScalarType> {
  static at::ScalarType get(const Value& v);
};
template <>
struct From<at::Device> {
  static at::Device get(const Value& v);
};
template <>
struct From<at::Scalar> {
  static at::Scalar get(const Value& v);
};
template <class T>
struct From<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static T get(const Value& v) {
    using Limits = std::numeric_limits<T>;
    using Widest = std::numeric_limits<long long>;
    constexpr bool fits = Limits::digits <= Widest::digits;
    return static_cast<T>(get_integer(v, Limits::min(), fits ? static_cast<long long>(Limits::max()) : Widest::max()));
  }
};
template <class T>
struct From<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static T get(const Value& v) { return get_real<T>(v); }
};
template <class T>
struct From<std::vector<T>> {
  static std::vector<T> get(const Value& v) {
    if (v.kind != Value::Kind::list) wrong_type("a list", v);
    std::vector<T> result;
    for (const Value& each : v.list) result.push_back(From<T>::get(each));
    return result;
  }
};
template <class T, std::size_t N>
struct From<std::array<T, N>> {
  static std::array<T, N> get(const Value& v) {
    if (v.kind != Value::Kind::list || v.list.size() != N) wrong_length("a list of ", N, v);
    std::array<T, N> result;
    for (std::size_t i = 0; i < N; ++i) result[i] = From<T>::get(v.list[i]);
    return result;
  }
};
template <class T>
struct From<std::optional<T>> {
  static std::optional<T> get(const Value& v) {
    if (v.kind == Value::Kind::none) return std::nullopt;
    return From<T>::get(v);
  }
};
template <class... T>
struct From<std::tuple<T...>> {
  static std::tuple<T...> get(const Value& v) {
    if (v.kind != Value::Kind::list || v.list.size() != sizeof...(T)) wrong_length("a tuple of ", sizeof...(T), v);
    std::size_t i = 0;
    return std::tuple<T...>{From<T>::get(v.list[i++])...};
  }
};
// A view owns its data until the call is over.
struct ViewedText {
  std::string held;
  operator const char*() const { return held.c_str(); }
  operator std::string_view() const { return held; }
};
template <class T>
struct From<T, std::enable_if_t<std::is_same_v<T, const char*> || std::is_same_v<T, std::string_view>>> {
  static ViewedText get(const Value& v) { return {From<std::string>::get(v)}; }
};
template <class T>
struct Viewed {
  std::vector<T> held;
  operator c10::ArrayRef<T>() const { return held; }
};
template <class T>
struct From<c10::ArrayRef<T>> {
  static Viewed<T> get(const Value& v) { return {From<std::vector<T>>::get(v)}; }
};

Value to_value(const at::Tensor& t);
Value to_value(bool b);
Value to_value(const std::string& s);
Value to_value(const char* s);
Value to_value(at::ScalarType t);
Value from_integer(long long i);
Value from_real(double d);
template <class T>
std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, Value> to_value(T i) {
  return from_integer(static_cast<long long>(i));
}
template <class T>
std::enable_if_t<std::is_floating_point_v<T>, Value> to_value(T d) {
  return from_real(static_cast<double>(d));
}
template <class T>
Value to_value(const std::optional<T>& o) {
  return o ? to_value(*o) : Value{};
}
template <class T>
Value to_value(const std::vector<T>& items) {
  Value v;
  v.kind = Value::Kind::list;
  for (const auto& each : items) v.list.push_back(to_value(static_cast<const T&>(each)));
  return v;
}
template <class T, std::size_t N>
Value to_value(const std::array<T, N>& items) {
  return to_value(std::vector<T>(items.begin(), items.end()));
}
template <class... T>
Value to_value(const std::tuple<T...>& items) {
  Value v;
  v.kind = Value::Kind::list;
  v.is_tuple = true;
  std::apply([&](const T&... each) { (v.list.push_back(to_value(each)), ...); }, items);
  return v;
}
template <class A, class B>
Value to_value(const std::pair<A, B>& p) {
  return to_value(std::tuple<A, B>(p.first, p.second));
}

struct Parameter {
  std::string name;  // empty: by position only
  bool has_default = false;
  Value fallback;
};

// What a module binds. is_value: not the function but what it returns.
struct Function {
  std::string name, doc;
  bool is_value = false;
  std::vector<Parameter> parameters;
  std::function<Value(const std::vector<Value>&)> call;

  Function();
  Function(const Function&);
  Function(Function&&) noexcept;
  Function& operator=(Function&&) noexcept;
  ~Function();
};

using Address = void (*)();  // of any function
// Calls the function at an address, which has the types that this was made for, with values from Python.
using Caller = Value (*)(Address function, const std::vector<Value>& values);
Function make_function(const char* name, std::size_t parameters, Caller caller, Address function);
void add_function(std::vector<Function>& all, Function&& made);

template <class T>
using Conversion = From<std::remove_cv_t<std::remove_reference_t<T>>>;

template <class R, class... A, std::size_t... I>
Value call_with(R (*function)(A...), const std::vector<Value>& values, std::index_sequence<I...>) {
  std::size_t number = 0;  // of the argument that is being converted
  try {
    // Converted arguments live in the tuple until the call is over, so that references and views stay valid.
    std::tuple<decltype(Conversion<A>::get(values[I]))...> held{(number = I + 1, Conversion<A>::get(values[I]))...};
    number = 0;
    if constexpr (std::is_void_v<R>) {
      function(static_cast<std::conditional_t<std::is_lvalue_reference_v<A>, A, A&&>>(std::get<I>(held))...);
      return Value{};
    } else {
      return to_value(
          function(static_cast<std::conditional_t<std::is_lvalue_reference_v<A>, A, A&&>>(std::get<I>(held))...));
    }
  } catch (const WrongType& error) {
    wrong_argument(number, error);
  }
}

template <class R, class... A>
Function make_function(const char* name, R (*function)(A...)) {
  const Caller caller = [](Address address, const std::vector<Value>& values) {
    return call_with(reinterpret_cast<R (*)(A...)>(address), values, std::index_sequence_for<A...>{});
  };
  return make_function(name, sizeof...(A), caller, reinterpret_cast<Address>(function));
}
template <class F, class = decltype(+std::declval<F>())>
Function make_function(const char* name, F lambda, ...) {
  return make_function(name, +lambda);
}

}  // namespace simt
