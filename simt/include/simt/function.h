// Calls a compiled function from Python: a small variant, conversions to and from C++ types, a table of functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#ifndef SIMT_API
#define SIMT_API __attribute__((visibility("default")))
#endif

namespace pybind11 {
class object;  // simt/pybind_values.h
}

namespace simt {

// What is only declared here is in src/process/values.cpp, compiled once and linked into every extension: each of a
// submission's units would compile it again.

// A value that is passed between Python and C++.
struct Value {
  enum class Kind : unsigned char { none, tensor, integer, real, boolean, text, list, dtype, device, dict, object };
  Kind kind = Kind::none;
  at::Tensor tensor;
  long long integer = 0;  // also a dtype's ScalarType and a boolean
  double real = 0;
  std::string text;         // also a device's name, and the C++ type of an object
  std::vector<Value> list;  // also a dict's keys and values, in turns, and the tensors that an object was made with
  bool is_tuple = false;
  std::shared_ptr<void> object;  // of a class that the extension binds

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

// A unit that binds classes specialises it (simt/toolchain/units.py): any class may be one of them then.
template <class T, class = void>
struct MayBeBound : std::false_type {};

// An object of a class that the extension binds, where a function takes it or a reference to it.
template <class T>
struct Borrowed {
  std::shared_ptr<void> owner;
  T& get() const { return *static_cast<T*>(owner.get()); }
};
std::shared_ptr<void> get_object(const Value& v, const std::type_info& type);

template <class T, class = void>
struct From {  // Value -> T
  static_assert(std::is_class_v<T> && MayBeBound<T>::value,
                "Python can pass tensors, numbers, bools, strings, dtypes, devices, and lists and optionals of them");
  static Borrowed<T> get(const Value& v) { return {get_object(v, typeid(T))}; }
};
template <class T>
struct From<T*, std::enable_if_t<std::is_class_v<T> && MayBeBound<T>::value>> {
  static T* get(const Value& v) {
    return v.kind == Value::Kind::none ? nullptr : static_cast<T*>(get_object(v, typeid(std::remove_cv_t<T>)).get());
  }
};
template <class T>
struct From<std::shared_ptr<T>> {
  static std::shared_ptr<T> get(const Value& v) {
    if (v.kind == Value::Kind::none) return nullptr;
    return std::static_pointer_cast<T>(get_object(v, typeid(std::remove_cv_t<T>)));
  }
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
template <class A, class B>
struct From<std::pair<A, B>> {
  static std::pair<A, B> get(const Value& v) {
    if (v.kind != Value::Kind::list || v.list.size() != 2) wrong_length("a tuple of ", 2, v);
    return {From<A>::get(v.list[0]), From<B>::get(v.list[1])};
  }
};
template <class Map>
Map get_map(const Value& v) {
  if (v.kind != Value::Kind::dict) wrong_type("a dict", v);
  Map result;
  for (std::size_t i = 0; i + 1 < v.list.size(); i += 2)
    result.emplace(From<typename Map::key_type>::get(v.list[i]), From<typename Map::mapped_type>::get(v.list[i + 1]));
  return result;
}
template <class K, class T>
struct From<std::map<K, T>> {
  static std::map<K, T> get(const Value& v) { return get_map<std::map<K, T>>(v); }
};
template <class K, class T>
struct From<std::unordered_map<K, T>> {
  static std::unordered_map<K, T> get(const Value& v) { return get_map<std::unordered_map<K, T>>(v); }
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
Value to_value(std::string_view s);
Value to_value(const at::Scalar& s);
Value to_value(const at::Device& d);
Value to_value(std::nullopt_t);
Value from_object(std::shared_ptr<void> object, const std::type_info& type);
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
// Declared before all are defined: each may hold any of the others.
template <class T>
Value to_value(const std::optional<T>& o);
template <class T>
Value to_value(const std::vector<T>& items);
template <class T>
Value to_value(c10::ArrayRef<T> items);
template <class T, std::size_t N>
Value to_value(const std::array<T, N>& items);
template <class... T>
Value to_value(const std::tuple<T...>& items);
template <class A, class B>
Value to_value(const std::pair<A, B>& p);
template <class K, class T>
Value to_value(const std::map<K, T>& items);
template <class K, class T>
Value to_value(const std::unordered_map<K, T>& items);
template <class T>
Value to_value(const std::shared_ptr<T>& object) {
  return object ? from_object(std::const_pointer_cast<std::remove_cv_t<T>>(object), typeid(T)) : Value{};
}
template <class T>
Value to_value(std::unique_ptr<T> object) {
  return to_value(std::shared_ptr<T>(std::move(object)));
}
template <class T>
std::enable_if_t<std::is_class_v<T> && MayBeBound<T>::value, Value> to_value(T* object) {
  return to_value(std::shared_ptr<T>(object));
}
template <class T>
std::enable_if_t<std::is_class_v<T> && MayBeBound<T>::value && !std::is_base_of_v<pybind11::object, T>, Value> to_value(
    T object) {
  return to_value(std::make_shared<T>(std::move(object)));
}
template <class T>
Value to_value(const std::optional<T>& o) {
  return o ? to_value(*o) : Value{};
}
template <class T>
Value to_value(c10::ArrayRef<T> items) {
  return to_value(items.vec());
}
template <class Map>
Value map_to_value(const Map& items) {
  Value v;
  v.kind = Value::Kind::dict;
  for (const auto& [key, item] : items) {
    v.list.push_back(to_value(key));
    v.list.push_back(to_value(item));
  }
  return v;
}
template <class K, class T>
Value to_value(const std::map<K, T>& items) {
  return map_to_value(items);
}
template <class K, class T>
Value to_value(const std::unordered_map<K, T>& items) {
  return map_to_value(items);
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

// What a module binds. is_value: not the function but what it returns. owner: the class of which it is a member, whose
// C++ type is `type`; its name begins with the class's then.
struct Function {
  enum class Member : unsigned char { none, start, method, fixed, getter, setter };
  std::string name, doc;
  std::string owner, type;
  Member member = Member::none;
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

// Returns what a function with a parameter of type A gets for a converted argument.
template <class A, class Held>
decltype(auto) pass(Held& held) {
  using T = std::remove_cv_t<std::remove_reference_t<A>>;
  if constexpr (std::is_same_v<Held, T>) {
    return static_cast<std::conditional_t<std::is_lvalue_reference_v<A>, A, A&&>>(held);
  } else if constexpr (!std::is_same_v<Held, Borrowed<T>>) {
    return static_cast<T>(held);  // a view of it
  } else if constexpr (std::is_reference_v<A>) {
    return static_cast<A>(held.get());
  } else {
    return T(held.get());
  }
}

template <class R, class... A, class F, std::size_t... I>
Value call_with(R (*)(A...), const F& function, const std::vector<Value>& values, std::index_sequence<I...>) {
  std::size_t number = 0;  // of the argument that is being converted
  try {
    // Converted arguments live in the tuple until the call is over, so that references and views stay valid.
    std::tuple<decltype(Conversion<A>::get(values[I]))...> held{(number = I + 1, Conversion<A>::get(values[I]))...};
    number = 0;
    if constexpr (std::is_void_v<R>) {
      function(pass<A>(std::get<I>(held))...);
      return Value{};
    } else {
      return to_value(function(pass<A>(std::get<I>(held))...));
    }
  } catch (const WrongType& error) {
    wrong_argument(number, error);
  }
}

template <class R, class... A>
Function make_function(const char* name, R (*function)(A...)) {
  const Caller caller = [](Address address, const std::vector<Value>& values) {
    const auto own = reinterpret_cast<R (*)(A...)>(address);
    return call_with(own, own, values, std::index_sequence_for<A...>{});
  };
  return make_function(name, sizeof...(A), caller, reinterpret_cast<Address>(function));
}
Function make_function(const char* name, std::size_t parameters,
                       std::function<Value(const std::vector<Value>&)> function);
// The function is called with the types of `like`, a null pointer.
template <class R, class... A, class F>
Function make_function_like(const char* name, R (*like)(A...), F function) {
  return make_function(name, sizeof...(A), [like, function](const std::vector<Value>& values) {
    return call_with(like, function, values, std::index_sequence_for<A...>{});
  });
}
template <class F, class = decltype(+std::declval<F>())>
Function make_function(const char* name, F lambda, ...) {
  return make_function(name, +lambda);
}

}  // namespace simt
