// The conversions between values from Python and C++ types that need no template.
#include <simt/function.h>

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
  constexpr const char* names[] = {"None",  "a Tensor", "an int",  "a float", "a bool",
                                   "a str", "a list",   "a dtype", "a device"};
  throw WrongType(std::string("should be ") + wanted + ", not " + names[static_cast<int>(value.kind)]);
}
void wrong_length(const char* wanted, std::size_t length, const Value& value) {
  wrong_type((wanted + std::to_string(length)).c_str(), value);
}
void wrong_argument(std::size_t number, const WrongType& error) {
  if (number == 0) throw;
  throw WrongType("argument " + std::to_string(number) + " " + error.what());
}

// ---- Value -> T ----

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
void add_function(std::vector<Function>& all, Function&& made) { all.push_back(std::move(made)); }

}  // namespace simt
