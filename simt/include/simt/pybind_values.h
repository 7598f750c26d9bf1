// pybind11's Python values (object, tuple, list, dict, str, …), which here are values that Python has passed or will get.
#pragma once

#include <simt/function.h>

namespace pybind11 {

class item;
class iterator;

// A value that its copies share, as copies of a reference to a Python object do. What Python has passed is read-only:
// Python would not see a change.
class object {
 public:
  object() = default;
  explicit object(simt::Value value, bool from_python = false);
  bool is_none() const { return !state || state->value.kind == simt::Value::Kind::none; }
  explicit operator bool() const { return state != nullptr; }
  template <class T>
  T cast() const {
    if constexpr (std::is_base_of_v<object, T>) {
      return T(*this);
    } else {
      auto held = simt::From<T>::get(value());
      return simt::pass<T>(held);
    }
  }
  item operator[](std::size_t place) const;
  item operator[](int place) const;
  item operator[](const char* key) const;
  item operator[](const std::string& key) const;
  item operator[](const object& key) const;
  iterator begin() const;
  iterator end() const;
  template <class T>
  bool contains(const T& key) const {
    return find(to_key(key)) >= 0;
  }
  const simt::Value& value() const;
  simt::Value& changed();  // the same, to be changed
  // Returns where in value().list an item is: a list's by its number, a dict's value by its key, or -1.
  long long find(const simt::Value& key) const;
  static simt::Value to_key(const char* key) { return simt::to_value(key); }
  static simt::Value to_key(const object& key) { return key.value(); }
  template <class T>
  static simt::Value to_key(const T& key) {
    using simt::to_value;
    return to_value(key);
  }

 protected:
  void expect(simt::Value::Kind kind, const char* name) const;

 private:
  struct State {
    simt::Value value;
    bool from_python = false;
  };
  std::shared_ptr<State> state;
};
using handle = object;
inline simt::Value to_value(const object& o) { return o.value(); }

// One item of a tuple, list or dict, as an object, or to be set.
class item : public object {
 public:
  item(object owner, simt::Value key);
  template <class T>
  void operator=(const T& given) {
    using simt::to_value;
    set(to_value(given));
  }
  void operator=(const char* given) { set(simt::to_value(given)); }
  void operator=(const item& other) { set(other.value()); }
  item(const item&) = default;

 private:
  void set(simt::Value given);
  object owner;
  simt::Value key;
};

// Of a tuple's or list's items, or of a dict's pairs of key and value.
class iterator {
 public:
  struct entry : object {  // the item, or the key
    explicit entry(const object& o) : object(o) {}
    object first, second;
  };
  iterator(object owner, std::size_t at) : owner(std::move(owner)), at(at) {}
  entry operator*() const;
  iterator& operator++();
  bool operator!=(const iterator& other) const { return at != other.at; }
  bool operator==(const iterator& other) const { return at == other.at; }

 private:
  object owner;
  std::size_t at;
};

class none : public object {
 public:
  none() : object(simt::Value{}) {}
};
// Each is made from nothing, from an object of its kind, or from a C++ value.
#define SIMT_SCALAR(name, kind, cpp, say)                                       \
  class name : public object {                                                  \
   public:                                                                      \
    name(const object& o) : object(o) { expect(simt::Value::Kind::kind, say); } \
    name(cpp given) : object(simt::to_value(given)) {}                          \
    operator cpp() const { return cast<cpp>(); }                                \
  };
SIMT_SCALAR(int_, integer, long long, "an int")
SIMT_SCALAR(float_, real, double, "a float")
SIMT_SCALAR(bool_, boolean, bool, "a bool")
#undef SIMT_SCALAR
class str : public object {
 public:
  str(const object& o) : object(o) { expect(simt::Value::Kind::text, "a str"); }
  str(const char* given = "") : object(simt::to_value(given)) {}
  str(const std::string& given) : object(simt::to_value(given)) {}
  operator std::string() const { return value().text; }
};
class tuple : public object {
 public:
  explicit tuple(std::size_t size = 0);
  tuple(const object& o) : object(o) { expect(simt::Value::Kind::list, "a tuple"); }
  std::size_t size() const { return value().list.size(); }
  bool empty() const { return size() == 0; }
};
class list : public object {
 public:
  explicit list(std::size_t size = 0);
  list(const object& o) : object(o) { expect(simt::Value::Kind::list, "a list"); }
  std::size_t size() const { return value().list.size(); }
  bool empty() const { return size() == 0; }
  template <class T>
  void append(const T& given) {
    changed().list.push_back(to_key(given));
  }
};
class dict : public object {
 public:
  dict();
  dict(const object& o) : object(o) { expect(simt::Value::Kind::dict, "a dict"); }
  std::size_t size() const { return value().list.size() / 2; }
  bool empty() const { return size() == 0; }
};
using sequence = list;

template <class... T>
tuple make_tuple(const T&... items) {
  simt::Value made;
  made.kind = simt::Value::Kind::list;
  made.is_tuple = true;
  (made.list.push_back(object::to_key(items)), ...);
  return tuple(object(std::move(made)));
}
template <class T>
T cast(const object& o) {
  return o.cast<T>();
}
template <class T>
object cast(const T& given) {
  return object(object::to_key(given));
}
std::size_t len(const object& o);
template <class T>
bool isinstance(const object& o) {
  using Kind = simt::Value::Kind;
  const Kind kind = o.value().kind;
  if constexpr (std::is_same_v<T, tuple>) return kind == Kind::list && o.value().is_tuple;
  if constexpr (std::is_same_v<T, list>) return kind == Kind::list && !o.value().is_tuple;
  if constexpr (std::is_same_v<T, dict>) return kind == Kind::dict;
  if constexpr (std::is_same_v<T, none>) return kind == Kind::none;
  if constexpr (std::is_same_v<T, str> || std::is_same_v<T, std::string>) return kind == Kind::text;
  if constexpr (std::is_same_v<T, bool_>) return kind == Kind::boolean;
  if constexpr (std::is_same_v<T, int_>) return kind == Kind::integer || kind == Kind::boolean;
  if constexpr (std::is_same_v<T, float_>) return kind == Kind::real;
  if constexpr (std::is_same_v<T, at::Tensor>) return kind == Kind::tensor;
  return kind == Kind::object && o.value().text == typeid(T).name();
}

// As which pybind11's exceptions arrive in Python.
struct value_error : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};
struct index_error : std::out_of_range {
  using std::out_of_range::out_of_range;
};
struct type_error : simt::WrongType {
  using simt::WrongType::WrongType;
};
struct cast_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
}  // namespace pybind11

namespace simt {
template <class T>
struct From<T, std::enable_if_t<std::is_base_of_v<pybind11::object, T>>> {
  static T get(const Value& v) { return T(pybind11::object(v, true)); }
};
}  // namespace simt
