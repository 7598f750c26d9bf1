// pybind11's names for the one thing that extensions do with them: binding functions by hand.
#pragma once

#include <simt/function.h>

namespace pybind11 {
struct none {};
inline simt::Value default_value(none) { return {}; }
template <class T>
simt::Value default_value(const T& value) {
  return simt::to_value(value);
}
struct arg_v {
  simt::Parameter parameter;
};
struct arg {
  const char* name;
  explicit arg(const char* name) : name(name) {}
  arg& noconvert(bool = true) { return *this; }
  arg& none(bool = true) { return *this; }
  template <class T>
  arg_v operator=(const T& value) const {
    return {{name, true, default_value(value)}};
  }
};
struct module_ {
  std::vector<simt::Function>& functions;
  template <class F, class... Extra>
  module_& def(const char* name, F function, const Extra&... extra) {
    simt::Function made = simt::make_function(name, function);
    std::size_t next = 0;
    (note(made, next, extra), ...);
    simt::add_function(functions, std::move(made));
    return *this;
  }
  struct Doc {
    Doc& operator=(const char*) { return *this; }
  };
  Doc doc() { return {}; }
  // Of the module: a number, a text, a tensor, or lists of them.
  struct Attribute {
    std::vector<simt::Function>& functions;
    const char* name;
    template <class T>
    void operator=(const T& value) const {
      simt::Function made;
      made.name = name;
      made.is_value = true;
      made.call = [value = simt::to_value(value)](const std::vector<simt::Value>&) { return value; };
      simt::add_function(functions, std::move(made));
    }
  };
  Attribute attr(const char* name) { return {functions, name}; }

 private:
  static void note(simt::Function& made, std::size_t&, const char* text) { made.doc = text; }
  static void note(simt::Function& made, std::size_t& next, const arg& a) {
    if (next < made.parameters.size()) made.parameters[next++].name = a.name;
  }
  static void note(simt::Function& made, std::size_t& next, const arg_v& a) {
    if (next < made.parameters.size()) made.parameters[next++] = a.parameter;
  }
  template <class T>
  static void note(simt::Function&, std::size_t&, const T&) {}   // call_guard and other policies change nothing here
};
using module = module_;
template <class... T>
struct call_guard {};
struct gil_scoped_release {};
namespace literals {
inline arg operator""_a(const char* name, std::size_t) { return arg(name); }
}  // namespace literals
}  // namespace pybind11
namespace py = pybind11;

#undef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME simt_extension
#undef PYBIND11_MODULE
#define PYBIND11_MODULE(name, variable)                                             \
  static void simt_bind_by_hand(::pybind11::module_&);                              \
  extern "C" SIMT_API void simt_functions(void* into) {                             \
    ::pybind11::module_ module{*static_cast<std::vector<::simt::Function>*>(into)}; \
    simt_bind_by_hand(module);                                                      \
  }                                                                                 \
  static void simt_bind_by_hand([[maybe_unused]] ::pybind11::module_& variable)
