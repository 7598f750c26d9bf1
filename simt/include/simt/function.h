// Calls a compiled function from Python: a small variant, conversions to and from C++ types, a table of functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace simt {

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
};

// An argument of the wrong type; becomes Python's TypeError.
struct WrongType : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline const char* kind_name(const Value& value) {
  constexpr const char* names[] = {"None",  "a Tensor", "an int",  "a float", "a bool",
                                   "a str", "a list",   "a dtype", "a device"};
  return names[static_cast<int>(value.kind)];
}
[[noreturn]] inline void wrong_type(const char* wanted, const Value& value) {
  throw WrongType(std::string("should be ") + wanted + ", not " + kind_name(value));
}

template <class T, class = void>
struct From {  // Value -> T
  static_assert(sizeof(T) == 0,
                "Python can pass tensors, numbers, bools, strings, dtypes, devices, and lists and optionals of them");
  static T get(const Value&);
};

template <>
struct From<at::Tensor> {
  static at::Tensor get(const Value& v) {
    if (v.kind != Value::Kind::tensor) wrong_type("a Tensor", v);
    return v.tensor;
  }
};
template <class T>
struct From<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static T get(const Value& v) {
    if (v.kind != Value::Kind::integer && v.kind != Value::Kind::boolean) wrong_type("an int", v);
    const T result = static_cast<T>(v.integer);
    if (static_cast<long long>(result) != v.integer || (std::is_unsigned_v<T> && v.integer < 0))
      throw WrongType("does not fit the C++ type: " + std::to_string(v.integer));
    return result;
  }
};
template <>
struct From<bool> {
  static bool get(const Value& v) {
    if (v.kind != Value::Kind::boolean && v.kind != Value::Kind::integer) wrong_type("a bool", v);
    return v.integer != 0;
  }
};
template <class T>
struct From<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static T get(const Value& v) {
    if (v.kind == Value::Kind::integer || v.kind == Value::Kind::boolean) return static_cast<T>(v.integer);
    if (v.kind == Value::Kind::tensor && v.tensor.defined() && v.tensor.numel() == 1)
      return static_cast<T>(v.tensor.item().toDouble());
    if (v.kind != Value::Kind::real) wrong_type("a float", v);
    return static_cast<T>(v.real);
  }
};
template <>
struct From<std::string> {
  static std::string get(const Value& v) {
    if (v.kind != Value::Kind::text) wrong_type("a str", v);
    return v.text;
  }
};
template <>
struct From<at::ScalarType> {
  static at::ScalarType get(const Value& v) {
    if (v.kind != Value::Kind::dtype) wrong_type("a dtype", v);
    return static_cast<at::ScalarType>(v.integer);
  }
};
template <>
struct From<at::Device> {
  static at::Device get(const Value& v) {
    if (v.kind != Value::Kind::device && v.kind != Value::Kind::text) wrong_type("a device", v);
    return at::Device(v.text);
  }
};
template <>
struct From<at::Scalar> {
  static at::Scalar get(const Value& v) {
    if (v.kind == Value::Kind::integer) return at::Scalar(static_cast<int64_t>(v.integer));
    if (v.kind == Value::Kind::boolean) return at::Scalar(v.integer != 0);
    if (v.kind != Value::Kind::real) wrong_type("a number", v);
    return at::Scalar(v.real);
  }
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
    if (v.kind != Value::Kind::list || v.list.size() != N) wrong_type(("a list of " + std::to_string(N)).c_str(), v);
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
    if (v.kind != Value::Kind::list || v.list.size() != sizeof...(T))
      wrong_type(("a tuple of " + std::to_string(sizeof...(T))).c_str(), v);
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

inline Value to_value(const at::Tensor& t) {
  Value v;
  v.kind = Value::Kind::tensor;
  v.tensor = t;
  return v;
}
inline Value to_value(bool b) {
  Value v;
  v.kind = Value::Kind::boolean;
  v.integer = b;
  return v;
}
inline Value to_value(const std::string& s) {
  Value v;
  v.kind = Value::Kind::text;
  v.text = s;
  return v;
}
inline Value to_value(const char* s) { return to_value(std::string(s)); }
inline Value to_value(at::ScalarType t) {
  Value v;
  v.kind = Value::Kind::dtype;
  v.integer = static_cast<int>(t);
  return v;
}
template <class T>
std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, Value> to_value(T i) {
  Value v;
  v.kind = Value::Kind::integer;
  v.integer = static_cast<long long>(i);
  return v;
}
template <class T>
std::enable_if_t<std::is_floating_point_v<T>, Value> to_value(T d) {
  Value v;
  v.kind = Value::Kind::real;
  v.real = d;
  return v;
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
};

// Converts argument i; a wrong type says which argument it was (counted from 1).
template <class T>
decltype(auto) convert(const std::vector<Value>& values, std::size_t i) {
  try {
    return From<std::remove_cv_t<std::remove_reference_t<T>>>::get(values[i]);
  } catch (const WrongType& error) {
    throw WrongType("argument " + std::to_string(i + 1) + " " + error.what());
  }
}

template <class F, class R, class... A, std::size_t... I>
Value call_with(F& function, const std::vector<Value>& values, std::index_sequence<I...>) {
  // Converted arguments live in the tuple until the call is over, so that references and views stay valid.
  std::tuple<decltype(convert<A>(values, I))...> held{convert<A>(values, I)...};
  if constexpr (std::is_void_v<R>) {
    function(static_cast<std::conditional_t<std::is_lvalue_reference_v<A>, A, A&&>>(std::get<I>(held))...);
    return Value{};
  } else {
    return to_value(
        function(static_cast<std::conditional_t<std::is_lvalue_reference_v<A>, A, A&&>>(std::get<I>(held))...));
  }
}

template <class R, class... A, class F>
Function wrap(const char* name, F function, R (*)(A...)) {
  Function result;
  result.name = name;
  result.parameters.resize(sizeof...(A));
  result.call = [function](const std::vector<Value>& values) mutable {
    return call_with<F, R, A...>(function, values, std::index_sequence_for<A...>{});
  };
  return result;
}
template <class R, class... A>
Function make_function(const char* name, R (*function)(A...)) {
  return wrap<R, A...>(name, function, function);
}
template <class F, class = decltype(+std::declval<F>())>
Function make_function(const char* name, F lambda, ...) {
  return make_function(name, +lambda);
}

}  // namespace simt
