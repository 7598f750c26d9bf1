// The conversions between values from Python and C++ types that need no template.
#include <simt/function.h>
#include <simt/pybind_values.h>

#include <cxxabi.h>

#include <cstdlib>

// An extension cannot turn off the recording of PyTorch's operators, which a monitor may have ordered: the linker takes
// these functions for its calls of at::enableRecordFunction(bool) and at::set_record_function_tls_(…).
extern "C" {
__attribute__((visibility("hidden"))) void simt_keep_recording(bool) __asm__("_ZN2at20enableRecordFunctionEb");
void simt_keep_recording(bool) {}
__attribute__((visibility("hidden"))) void simt_keep_state(const void*) __asm__(
    "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE");
void simt_keep_state(const void*) {}
}

namespace simt {

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Function::Function() = default;
Function::Function(const Function&) = default;
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;
Function::~Function() = default;

// ---- wrong types ----

void wrong_type(const char* wanted, const Value& value) {
  constexpr const char* names[] = {"None",   "a Tensor", "an int",   "a float", "a bool",   "a str",
                                   "a list", "a dtype",  "a device", "a dict",  "an object"};
  throw WrongType(std::string("should be ") + wanted + ", not " + names[static_cast<int>(value.kind)]);
}
void wrong_length(const char* wanted, std::size_t length, const Value& value) {
  wrong_type((wanted + std::to_string(length)).c_str(), value);
}
void wrong_argument(std::size_t number, const WrongType& error) {
  if (number == 0) throw;
  throw WrongType("argument " + std::to_string(number) + " " + error.what());
}

std::string name_type(const char* mangled) {
  char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
  std::string name = plain ? plain : mangled;
  std::free(plain);
  return name;
}

// ---- Value -> T ----

std::shared_ptr<void> get_object(const Value& v, const std::type_info& type) {
  if (v.kind == Value::Kind::object && v.text == type.name()) return v.object;
  const std::string wanted = "an object of the C++ class " + name_type(type.name());
  if (v.kind != Value::Kind::object) wrong_type(wanted.c_str(), v);
  throw WrongType("should be " + wanted + ", not of " + name_type(v.text.c_str()));
}

at::Tensor From<at::Tensor>::get(const Value& v) {
  if (v.kind != Value::Kind::tensor) wrong_type("a Tensor", v);
  return v.tensor;
}
long long get_integer(const Value& v, long long lowest, long long highest) {
  if (v.kind != Value::Kind::integer && v.kind != Value::Kind::boolean) wrong_type("an int", v);
  if (v.integer < lowest || v.integer > highest)
    throw WrongType("does not fit the C++ type: " + std::to_string(v.integer));
  return v.integer;
}
bool From<bool>::get(const Value& v) {
  if (v.kind != Value::Kind::boolean && v.kind != Value::Kind::integer) wrong_type("a bool", v);
  return v.integer != 0;
}
template <class T>
T get_real(const Value& v) {
  if (v.kind == Value::Kind::integer || v.kind == Value::Kind::boolean) return static_cast<T>(v.integer);
  if (v.kind == Value::Kind::tensor && v.tensor.defined() && v.tensor.numel() == 1)
    return static_cast<T>(v.tensor.item().toDouble());
  if (v.kind != Value::Kind::real) wrong_type("a float", v);
  return static_cast<T>(v.real);
}
template float get_real<float>(const Value&);
template double get_real<double>(const Value&);
template long double get_real<long double>(const Value&);
std::string From<std::string>::get(const Value& v) {
  if (v.kind != Value::Kind::text) wrong_type("a str", v);
  return v.text;
}
at::ScalarType From<at::ScalarType>::get(const Value& v) {
  if (v.kind != Value::Kind::dtype) wrong_type("a dtype", v);
  return static_cast<at::ScalarType>(v.integer);
}
at::Device From<at::Device>::get(const Value& v) {
  if (v.kind != Value::Kind::device && v.kind != Value::Kind::text) wrong_type("a device", v);
  return at::Device(v.text);
}
at::Scalar From<at::Scalar>::get(const Value& v) {
  if (v.kind == Value::Kind::integer) return at::Scalar(static_cast<int64_t>(v.integer));
  if (v.kind == Value::Kind::boolean) return at::Scalar(v.integer != 0);
  if (v.kind != Value::Kind::real) wrong_type("a number", v);
  return at::Scalar(v.real);
}

// ---- T -> Value ----

Value to_value(const at::Tensor& t) {
  Value v;
  v.kind = Value::Kind::tensor;
  v.tensor = t;
  return v;
}
Value to_value(bool b) {
  Value v;
  v.kind = Value::Kind::boolean;
  v.integer = b;
  return v;
}
Value to_value(const std::string& s) {
  Value v;
  v.kind = Value::Kind::text;
  v.text = s;
  return v;
}
Value to_value(const char* s) { return to_value(std::string(s)); }
Value to_value(at::ScalarType t) {
  Value v;
  v.kind = Value::Kind::dtype;
  v.integer = static_cast<int>(t);
  return v;
}
Value to_value(std::string_view s) { return to_value(std::string(s)); }
Value to_value(const at::Scalar& s) {
  if (s.isBoolean()) return to_value(s.toBool());
  return s.isFloatingPoint() ? from_real(s.toDouble()) : from_integer(s.toLong());
}
Value to_value(const at::Device& d) {
  Value v;
  v.kind = Value::Kind::device;
  v.text = d.str();
  return v;
}
Value to_value(std::nullopt_t) { return {}; }
Value from_object(std::shared_ptr<void> object, const std::type_info& type) {
  Value v;
  v.kind = Value::Kind::object;
  v.object = std::move(object);
  v.text = type.name();
  return v;
}
Value from_integer(long long i) {
  Value v;
  v.kind = Value::Kind::integer;
  v.integer = i;
  return v;
}
Value from_real(double d) {
  Value v;
  v.kind = Value::Kind::real;
  v.real = d;
  return v;
}

// ---- functions ----

Function make_function(const char* name, std::size_t parameters, Caller caller, Address function) {
  Function made;
  made.name = name;
  made.parameters.resize(parameters);
  made.call = [caller, function](const std::vector<Value>& values) { return caller(function, values); };
  return made;
}
Function make_function(const char* name, std::size_t parameters,
                       std::function<Value(const std::vector<Value>&)> function) {
  Function made;
  made.name = name;
  made.parameters.resize(parameters);
  made.call = std::move(function);
  return made;
}
void add_function(std::vector<Function>& all, Function&& made) { all.push_back(std::move(made)); }

}  // namespace simt

// ---- pybind11's Python values ----

namespace pybind11 {

using simt::Value;
using Kind = Value::Kind;

static bool are_equal(const Value& a, const Value& b) {
  return a.kind == b.kind && a.integer == b.integer && a.real == b.real && a.text == b.text;
}
static Value make_list(std::size_t size, bool is_tuple) {
  Value made;
  made.kind = Kind::list;
  made.is_tuple = is_tuple;
  made.list.resize(size);
  return made;
}
static Value make_dict() {
  Value made;
  made.kind = Kind::dict;
  return made;
}

object::object(Value value, bool from_python) : state(std::make_shared<State>(State{std::move(value), from_python})) {}
const Value& object::value() const {
  static const Value nothing;
  return state ? state->value : nothing;
}
Value& object::changed() {
  if (!state || state->from_python)
    throw simt::WrongType("is a list or dict of Python, which C++ cannot change on the CPU: return a new one");
  return state->value;
}
long long object::find(const Value& key) const {
  const Value& all = value();
  if (all.kind == Kind::list) return key.kind == Kind::integer ? key.integer : -1;
  if (all.kind != Kind::dict) throw simt::WrongType("has no items: it is no list, tuple or dict");
  for (std::size_t i = 0; i + 1 < all.list.size(); i += 2)
    if (are_equal(all.list[i], key)) return static_cast<long long>(i + 1);
  return -1;
}
void object::expect(Kind kind, const char* name) const {
  if (value().kind != kind) simt::wrong_type(name, value());
}
item object::operator[](std::size_t place) const { return {*this, simt::from_integer(static_cast<long long>(place))}; }
item object::operator[](int place) const { return {*this, simt::from_integer(place)}; }
item object::operator[](const char* key) const { return {*this, simt::to_value(key)}; }
item object::operator[](const std::string& key) const { return {*this, simt::to_value(key)}; }
item object::operator[](const object& key) const { return {*this, key.value()}; }
iterator object::begin() const { return {*this, 0}; }
iterator object::end() const { return {*this, value().list.size()}; }

static object look_up(const object& owner, const Value& key) {
  const long long at = owner.find(key);
  if (at >= 0 && at < static_cast<long long>(owner.value().list.size()))
    return object(owner.value().list[static_cast<std::size_t>(at)], true);
  if (owner.value().kind == Kind::list) throw index_error("list index out of range");
  return {};
}
item::item(object owner, Value key) : object(look_up(owner, key)), owner(std::move(owner)), key(std::move(key)) {}
void item::set(Value given) {
  Value& all = owner.changed();
  const long long at = owner.find(key);
  if (at >= 0) {
    all.list[static_cast<std::size_t>(at)] = std::move(given);
  } else {
    all.list.push_back(key);
    all.list.push_back(std::move(given));
  }
}

iterator::entry iterator::operator*() const {
  const Value& all = owner.value();
  entry found(object(all.list[at], true));
  if (all.kind == Kind::dict) {
    found.first = found;
    found.second = object(all.list[at + 1], true);
  }
  return found;
}
iterator& iterator::operator++() {
  at += owner.value().kind == Kind::dict ? 2 : 1;
  return *this;
}

tuple::tuple(std::size_t size) : object(make_list(size, true)) {}
list::list(std::size_t size) : object(make_list(size, false)) {}
dict::dict() : object(make_dict()) {}
std::size_t len(const object& o) {
  return o.value().kind == Kind::dict ? o.value().list.size() / 2 : o.value().list.size();
}

}  // namespace pybind11
