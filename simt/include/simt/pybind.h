// pybind11's names for what extensions do with them by hand: bind functions, classes and values.
#pragma once

#include <simt/function.h>
#include <simt/pybind_values.h>

namespace pybind11 {
template <class T>
simt::Value default_value(const T& value) {
  return object::to_key(value);
}
inline simt::Value default_value(std::nullptr_t) { return {}; }
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

namespace detail {
// Writes what follows the function in a def(…) into the function: its documentation, and its parameters from `next` on.
inline void note(simt::Function& made, std::size_t&, const char* text) { made.doc = text; }
inline void note(simt::Function& made, std::size_t& next, const arg& a) {
  if (next < made.parameters.size()) made.parameters[next++].name = a.name;
}
inline void note(simt::Function& made, std::size_t& next, const arg_v& a) {
  if (next < made.parameters.size()) made.parameters[next++] = a.parameter;
}
template <class T>
void note(simt::Function&, std::size_t&, const T&) {}  // call_guard and other policies change nothing here

// The function type of a lambda's or a member function's call, without its class.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
#define SIMT_SIGNATURE(qualifiers)              \
  template <class C, class R, class... A>       \
  struct Signature<R (C::*)(A...) qualifiers> { \
    using Plain = R (*)(A...);                  \
    using OfObject = R (*)(C&, A...);           \
  };
SIMT_SIGNATURE()
SIMT_SIGNATURE(const)
SIMT_SIGNATURE(noexcept)
SIMT_SIGNATURE(const noexcept)
#undef SIMT_SIGNATURE

template <class T, class F>
simt::Function make(const char* name, F function) {
  if constexpr (std::is_member_function_pointer_v<F>) {
    // a method of a base class is one of T's
    const auto call = [function](T& self, auto&&... rest) -> decltype(auto) {
      return (self.*function)(static_cast<decltype(rest)>(rest)...);
    };
    return simt::make_function_like(name, static_cast<typename Signature<F>::OfObject>(nullptr), call);
  } else if constexpr (std::is_class_v<F>) {
    return simt::make_function_like(name, static_cast<typename Signature<F>::Plain>(nullptr), std::move(function));
  } else {
    return simt::make_function(name, function);
  }
}

template <class... A>
struct Constructor {};
template <class F>
struct Factory {
  F function;
};
}  // namespace detail
template <class... A>
detail::Constructor<A...> init() {
  return {};
}
template <class F>
detail::Factory<F> init(F function) {
  return {std::move(function)};
}

struct module_ {
  std::vector<simt::Function>& functions;
  template <class F, class... Extra>
  module_& def(const char* name, F function, const Extra&... extra) {
    simt::Function made = detail::make<void>(name, function);
    std::size_t next = 0;
    (detail::note(made, next, extra), ...);
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
      made.call = [value = object::to_key(value)](const std::vector<simt::Value>&) { return value; };
      simt::add_function(functions, std::move(made));
    }
  };
  Attribute attr(const char* name) { return {functions, name}; }
};
using module = module_;

template <class T, class... Options>
class class_ {
  static_assert(((std::is_same_v<Options, std::shared_ptr<T>> || std::is_same_v<Options, std::unique_ptr<T>>) && ...),
                "a class with a base class cannot be bound on the CPU");
  using Member = simt::Function::Member;
  std::vector<simt::Function>& functions;
  std::string owner;

  template <class... Extra>
  class_& add(simt::Function made, const std::string& name, Member member, std::size_t next, const Extra&... extra) {
    made.name = owner + "." + name;
    made.owner = owner;
    made.type = typeid(T).name();
    made.member = member;
    (detail::note(made, next, extra), ...);
    simt::add_function(functions, std::move(made));
    return *this;
  }

 public:
  template <class... Extra>
  class_(module_& module, const char* name, const Extra&...) : functions(module.functions), owner(name) {
    add(simt::Function(), "", Member::none, 0);
  }
  template <class... A, class... Extra>
  class_& def(detail::Constructor<A...>, const Extra&... extra) {
    const auto call = [](A... given) {
      if constexpr (std::is_constructible_v<T, A...>)
        return std::make_shared<T>(std::forward<A>(given)...);
      else
        return std::shared_ptr<T>(new T{std::forward<A>(given)...});
    };
    using Like = std::shared_ptr<T> (*)(A...);
    return add(simt::make_function_like("", static_cast<Like>(nullptr), call), "__init__", Member::start, 0, extra...);
  }
  template <class F, class... Extra>
  class_& def(detail::Factory<F> factory, const Extra&... extra) {
    return add(detail::make<T>("", factory.function), "__init__", Member::start, 0, extra...);
  }
  template <class F, class... Extra>
  class_& def(const char* name, F function, const Extra&... extra) {
    return add(detail::make<T>(name, function), name, Member::method, 1, extra...);
  }
  template <class F, class... Extra>
  class_& def_static(const char* name, F function, const Extra&... extra) {
    return add(detail::make<T>(name, function), name, Member::fixed, 0, extra...);
  }
  template <class F, class... Extra>
  class_& def_property_readonly(const char* name, F getter, const Extra&... extra) {
    return add(detail::make<T>(name, getter), name, Member::getter, 1, extra...);
  }
  template <class F, class G, class... Extra>
  class_& def_property(const char* name, F getter, G setter, const Extra&... extra) {
    add(detail::make<T>(name, getter), name, Member::getter, 1, extra...);
    return add(detail::make<T>(name, setter), std::string(name) + "=", Member::setter, 1, extra...);
  }
  template <class D, class C, class... Extra>
  class_& def_readonly(const char* name, D C::* field, const Extra&... extra) {
    return def_property_readonly(name, [field](const T& self) { return self.*field; }, extra...);
  }
  template <class D, class C, class... Extra>
  class_& def_readwrite(const char* name, D C::* field, const Extra&... extra) {
    def_readonly(name, field, extra...);
    const auto set = [field](T& self, D given) { self.*field = std::move(given); };
    return add(detail::make<T>(name, set), std::string(name) + "=", Member::setter, 1, extra...);
  }
};

template <class... T>
struct call_guard {};
template <std::size_t Nurse, std::size_t Patient>
struct keep_alive {};
struct kw_only {};
struct pos_only {};
struct dynamic_attr {};
struct is_operator {};
struct module_local {
  explicit module_local(bool = true) {}
};
struct doc {
  explicit doc(const char*) {}
};
enum class return_value_policy : unsigned char {
  automatic,
  automatic_reference,
  take_ownership,
  copy,
  move,
  reference,
  reference_internal
};
// Kernels and what launches them run without the interpreter's lock, and nothing here needs it.
struct gil_scoped_release {
  gil_scoped_release() {}
};
struct gil_scoped_acquire {
  gil_scoped_acquire() {}
};
// Chooses one of several functions of a name by its parameters.
template <class... A>
struct overload_cast_impl {
  template <class R>
  constexpr auto operator()(R (*function)(A...)) const {
    return function;
  }
  template <class R, class C>
  constexpr auto operator()(R (C::*function)(A...), std::false_type = {}) const {
    return function;
  }
  template <class R, class C>
  constexpr auto operator()(R (C::*function)(A...) const, std::true_type) const {
    return function;
  }
};
template <class... A>
constexpr overload_cast_impl<A...> overload_cast{};
constexpr std::true_type const_{};

namespace literals {
inline arg operator""_a(const char* name, std::size_t) { return arg(name); }
}  // namespace literals
}  // namespace pybind11
namespace py = pybind11;

#undef TORCH_EXTENSION_NAME
#define TORCH_EXTENSION_NAME simt_extension
#undef PYBIND11_MODULE
#define PYBIND11_MODULE(name, variable, ...)                                        \
  static void simt_bind_by_hand(::pybind11::module_&);                              \
  extern "C" SIMT_API void simt_functions(void* into) {                             \
    ::pybind11::module_ module{*static_cast<std::vector<::simt::Function>*>(into)}; \
    simt_bind_by_hand(module);                                                      \
  }                                                                                 \
  static void simt_bind_by_hand([[maybe_unused]] ::pybind11::module_& variable)
