// Defines the Python module that loads compiled extensions and calls their functions. It is compiled once, so an edited
// kernel needs no binding code of its own. It stays whole: arguments, the call and its errors are one path, and each file
// more would parse torch's headers again.
// libtorch was built with it, and the layout of RecordFunction depends on it.
#ifndef NDEBUG
#define NDEBUG
#endif
#include <Python.h>

#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <c10/core/CPUAllocator.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/object_ptr.h>
#include <torch/csrc/utils/tensor_dtypes.h>
#include <torch/csrc/DynamicTypes.h>

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <utility>

#include <simt/function.h>
#include <simt/host.h>

#include "check/checker.h"
#include "run/memory.h"
#include "run/module.h"
#include "run/monitor.h"
#include "run/options.h"

namespace {

PyObject* make_error = nullptr;  // (reason, message, kernel, file, line, defined, block, thread, code) -> exception

// ---- values ----

struct Unsupported {
  std::string what;
};

// The attribute of an object of a bound class (simt/runtime/bound_classes.py) in which its C++ value is.
constexpr const char* HELD = "_simt_value";

void free_held(PyObject* capsule) { delete static_cast<simt::Value*>(PyCapsule_GetPointer(capsule, HELD)); }

simt::Value from_python(PyObject* object) {
  using Kind = simt::Value::Kind;
  simt::Value value;
  if (object == Py_None) return value;
  if (THPVariable_Check(object)) {
    value.kind = Kind::tensor;
    value.tensor = THPVariable_Unpack(object);
  } else if (PyBool_Check(object)) {
    value.kind = Kind::boolean;
    value.integer = object == Py_True;
  } else if (PyLong_Check(object)) {
    value.kind = Kind::integer;
    value.integer = PyLong_AsLongLong(object);
    if (PyErr_Occurred()) throw Unsupported{"an int that does not fit in 64 bits"};
  } else if (PyFloat_Check(object)) {
    value.kind = Kind::real;
    value.real = PyFloat_AS_DOUBLE(object);
  } else if (PyUnicode_Check(object)) {
    value.kind = Kind::text;
    value.text = PyUnicode_AsUTF8(object);
  } else if (PyList_Check(object) || PyTuple_Check(object)) {
    value.kind = Kind::list;
    value.is_tuple = PyTuple_Check(object);
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    for (Py_ssize_t i = 0; i < size; ++i) value.list.push_back(from_python(PySequence_Fast_GET_ITEM(object, i)));
  } else if (PyDict_Check(object)) {
    value.kind = Kind::dict;
    PyObject *key, *item;
    for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &item);) {
      value.list.push_back(from_python(key));
      value.list.push_back(from_python(item));
    }
  } else if (THPDtype_Check(object)) {
    value.kind = Kind::dtype;
    value.integer = static_cast<int>(reinterpret_cast<THPDtype*>(object)->scalar_type);
  } else if (THPDevice_Check(object)) {
    value.kind = Kind::device;
    value.text = reinterpret_cast<THPDevice*>(object)->device.str();
  } else if (PyObject_HasAttrString(object, HELD)) {
    THPObjectPtr held(PyObject_GetAttrString(object, HELD));
    if (!held || !PyCapsule_IsValid(held.get(), HELD)) {
      PyErr_Clear();
      throw Unsupported{Py_TYPE(object)->tp_name};
    }
    return *static_cast<simt::Value*>(PyCapsule_GetPointer(held.get(), HELD));
  } else if (PyIndex_Check(object)) {
    THPObjectPtr number(PyNumber_Index(object));
    return from_python(number.get());
  } else if (Py_TYPE(object)->tp_as_number && Py_TYPE(object)->tp_as_number->nb_float) {
    value.kind = Kind::real;
    value.real = PyFloat_AsDouble(object);
  } else {
    throw Unsupported{Py_TYPE(object)->tp_name};
  }
  return value;
}

PyObject* to_python(const simt::Value& value, PyObject* classes);

// Returns an object of the class that is bound for the C++ type, made by the function that `classes` holds for it.
PyObject* wrap_object(const simt::Value& value, PyObject* classes) {
  THPObjectPtr held(PyCapsule_New(new simt::Value(value), HELD, free_held));
  PyObject* make = classes ? PyDict_GetItemString(classes, value.text.c_str()) : nullptr;
  if (held && make) return PyObject_CallFunctionObjArgs(make, held.get(), nullptr);
  if (held) PyErr_Format(PyExc_TypeError, "no class is bound for the C++ type %s", value.text.c_str());
  return nullptr;
}

PyObject* dict_to_python(const simt::Value& value, PyObject* classes) {
  THPObjectPtr made(PyDict_New());
  for (std::size_t i = 0; made && i + 1 < value.list.size(); i += 2) {
    THPObjectPtr key(to_python(value.list[i], classes));
    THPObjectPtr item(key ? to_python(value.list[i + 1], classes) : nullptr);
    if (!item || PyDict_SetItem(made.get(), key.get(), item.get()) != 0) return nullptr;
  }
  return made.release();
}

PyObject* to_python(const simt::Value& value, PyObject* classes) {
  using Kind = simt::Value::Kind;
  switch (value.kind) {
    case Kind::none: Py_RETURN_NONE;
    case Kind::tensor: return THPVariable_Wrap(value.tensor);
    case Kind::integer: return PyLong_FromLongLong(value.integer);
    case Kind::real: return PyFloat_FromDouble(value.real);
    case Kind::boolean: return PyBool_FromLong(static_cast<long>(value.integer));
    case Kind::device: return THPDevice_New(at::Device(value.text));
    case Kind::dict: return dict_to_python(value, classes);
    case Kind::object: return wrap_object(value, classes);
    case Kind::text: return PyUnicode_FromStringAndSize(value.text.data(), static_cast<Py_ssize_t>(value.text.size()));
    case Kind::dtype:
      return Py_NewRef(reinterpret_cast<PyObject*>(torch::getTHPDtype(static_cast<at::ScalarType>(value.integer))));
    case Kind::list: break;
  }
  const auto size = static_cast<Py_ssize_t>(value.list.size());
  THPObjectPtr items(value.is_tuple ? PyTuple_New(size) : PyList_New(size));
  if (!items) return nullptr;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = to_python(value.list[static_cast<std::size_t>(i)], classes);
    if (!item) return nullptr;
    if (value.is_tuple)
      PyTuple_SET_ITEM(items.get(), i, item);
    else
      PyList_SET_ITEM(items.get(), i, item);
  }
  return items.release();
}

// ---- functions ----

// A function of one mode's build. When another mode is on, it gets that mode's build from `owner`, once.
struct FunctionObject {
  PyObject_HEAD simt::Function* function;
  int mode;
  bool probed;  // its build reports every access to the checks
  PyObject* owner;  // called with a mode, returns {name: function}
  PyObject* classes;  // C++ type of a bound class -> what makes its object from a C++ value
  PyObject* others[3];
};

FunctionObject* in_current_mode(FunctionObject* self) {
  const int mode = static_cast<int>(simt::options().mode);
  if (mode == self->mode || self->owner == Py_None) return self;
  if (!self->others[mode]) {
    THPObjectPtr all(PyObject_CallFunction(self->owner, "i", mode));
    if (!all) return nullptr;
    PyObject* other = PyDict_GetItemString(all.get(), self->function->name.c_str());
    if (!other) {
      PyErr_SetString(PyExc_RuntimeError, "the function is missing from the other build");
      return nullptr;
    }
    self->others[mode] = Py_NewRef(other);
  }
  return reinterpret_cast<FunctionObject*>(self->others[mode]);
}

// Registers the tensors that Python passes with the checks, whichever allocator their memory came from.
void note_tensors(const simt::Value& value) {
  if (value.kind == simt::Value::Kind::tensor && value.tensor.defined() && value.tensor.has_storage())
    simt::note_argument(value.tensor.storage().data(), value.tensor.storage().nbytes());
  for (const auto& each : value.list) note_tensors(each);
}

// Adds the tensors among the values to those that go with an object, so that the checks know them where it is used.
void keep_tensors(simt::Value& object, const std::vector<simt::Value>& values) {
  for (const auto& value : values)
    if (value.kind == simt::Value::Kind::tensor) object.list.push_back(value);
}

PyObject* fail(const simt::Function& function, const std::string& text) {
  PyErr_SetString(PyExc_TypeError, (function.name + "(): " + text).c_str());
  return nullptr;
}

// Returns whether every keyword names a parameter that was not passed by position; if not, sets an exception.
bool all_known(const simt::Function& function, PyObject* kwargs, std::size_t given) {
  PyObject *key, *object;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &object);) {
    const std::string name = PyUnicode_AsUTF8(key);
    const auto& all = function.parameters;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& parameter) { return parameter.name == name; });
    if (found == all.end()) return fail(function, "has no parameter named " + name), false;
    if (static_cast<std::size_t>(found - all.begin()) < given) return fail(function, "got " + name + " twice"), false;
  }
  return true;
}

// Converts Python's arguments to `values`. Returns false and sets an exception if they do not fit.
bool gather(const simt::Function& function, PyObject* args, PyObject* kwargs, std::vector<simt::Value>& values) {
  const auto given = static_cast<std::size_t>(PyTuple_GET_SIZE(args));
  const auto wanted = function.parameters.size();
  if (given > wanted || (!kwargs && given < wanted && !function.parameters[given].has_default)) {
    fail(function, "takes " + std::to_string(wanted) + (wanted == 1 ? " argument" : " arguments") + ", but got " +
                       std::to_string(given));
    return false;
  }
  for (std::size_t i = 0; i < wanted; ++i) {
    const simt::Parameter& parameter = function.parameters[i];
    PyObject* object = i < given ? PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i)) : nullptr;
    if (!object && kwargs && !parameter.name.empty()) object = PyDict_GetItemString(kwargs, parameter.name.c_str());
    if (object) {
      try {
        values.push_back(from_python(object));
      } catch (const Unsupported& error) {
        fail(function, "argument " + std::to_string(i + 1) + " is " + error.what + ", which has no C++ counterpart");
        return false;
      }
    } else if (parameter.has_default) {
      values.push_back(parameter.fallback);
    } else {
      fail(function, "argument " + std::to_string(i + 1) + (parameter.name.empty() ? "" : " (" + parameter.name + ")") +
                         " is missing");
      return false;
    }
  }
  return !kwargs || all_known(function, kwargs, given);
}

PyObject* triple(const uint3& v) { return Py_BuildValue("(III)", v.x, v.y, v.z); }

void raise(const simt::Fault& fault) {
  THPObjectPtr code(PyList_New(0));
  for (const auto& place : fault.code) {
    THPObjectPtr item(Py_BuildValue("(sK)", place.module.c_str(), static_cast<unsigned long long>(place.offset)));
    PyList_Append(code.get(), item.get());
  }
  THPObjectPtr block(fault.in_thread ? triple(fault.block) : Py_NewRef(Py_None));
  THPObjectPtr thread(fault.in_thread ? triple(fault.thread) : Py_NewRef(Py_None));
  THPObjectPtr error(PyObject_CallFunction(make_error, "ssssiiOOO", fault.reason.c_str(), fault.message.c_str(),
                                           fault.kernel.c_str(), fault.file.c_str(), fault.line, fault.defined,
                                           block.get(), thread.get(), code.get()));
  if (!error) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
}

void flush_printed() {
  const std::string text = simt::take_printed();
  if (text.empty()) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* out = PySys_GetObject("stdout");
  if (out && out != Py_None) {
    THPObjectPtr string(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
    THPObjectPtr result(string ? PyObject_CallMethod(out, "write", "O", string.get()) : nullptr);
    if (!result) PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
}

// Called by the thread that waits for a launch, without the interpreter's lock.
bool interrupted() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool yes = PyErr_Occurred() || PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return yes;
}

template <class... E>
bool is_one(const std::exception& error) {
  return (dynamic_cast<const E*>(&error) || ...);
}

// Returns the Python exception to which torch's and pybind11's bindings convert a C++ exception.
PyObject* type_of(const std::exception& error) {
  if (is_one<c10::IndexError, std::out_of_range>(error)) return PyExc_IndexError;
  if (is_one<c10::ValueError, std::invalid_argument, std::domain_error, std::length_error, std::range_error>(error))
    return PyExc_ValueError;
  if (is_one<c10::TypeError>(error)) return PyExc_TypeError;
  if (is_one<c10::NotImplementedError>(error)) return PyExc_NotImplementedError;
  if (is_one<std::overflow_error>(error)) return PyExc_OverflowError;
  return PyExc_RuntimeError;
}

PyObject* call(PyObject* self, PyObject* args, PyObject* kwargs) {
  const bool reports = simt::obey();
  FunctionObject* built = in_current_mode(reinterpret_cast<FunctionObject*>(self));
  if (!built) return nullptr;
  const simt::Function& function = *built->function;
  std::vector<simt::Value> values;
  if (!gather(function, args, kwargs, values)) return nullptr;
  const bool checks = simt::options().mode == simt::Mode::check;
  if (reports && checks && !built->probed) simt::report_unprobed();
  const bool notes = checks || (reports && simt::orders().record != 0);
  if (notes)
    for (const auto& value : values) note_tensors(value);
  simt::Value result;
  PyObject* type = nullptr;
  std::string text;
  PyThreadState* state = PyEval_SaveThread();
  try {
    result = function.call(values);
  } catch (const simt::WrongType& error) {
    type = PyExc_TypeError;
    text = function.name + "(): " + error.what();
  } catch (const c10::Error& error) {
    type = type_of(error);
    text = error.what_without_backtrace();
  } catch (const std::bad_alloc&) {
    type = PyExc_MemoryError;
    text = function.name + "() requested more memory than is available";
  } catch (const std::exception& error) {
    type = type_of(error);
    text = error.what();
  } catch (...) {
    type = PyExc_RuntimeError;
    text = function.name + "() threw an exception that is not a std::exception";
  }
  simt::Fault fault;
  const bool faulted = simt::finish_call(fault, type != nullptr);
  if (notes) simt::forget_arguments();
  PyEval_RestoreThread(state);
  flush_printed();
  if (PyErr_Occurred()) return nullptr;  // Ctrl-C while a kernel ran
  if (faulted) {
    raise(fault);
    return nullptr;
  }
  if (type) {
    PyErr_SetString(type, text.c_str());
    return nullptr;
  }
  if (function.member == simt::Function::Member::start) keep_tensors(result, values);
  return to_python(result, built->classes);
}

void destroy(PyObject* self) {
  auto* object = reinterpret_cast<FunctionObject*>(self);
  delete object->function;
  Py_XDECREF(object->owner);
  Py_XDECREF(object->classes);
  for (PyObject* other : object->others) Py_XDECREF(other);
  Py_TYPE(self)->tp_free(self);
}
PyObject* get_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<FunctionObject*>(self)->function->name.c_str());
}
PyObject* get_doc(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<FunctionObject*>(self)->function->doc.c_str());
}
// Returns (class, its C++ type, kind) of a member of a class, or None: the kind is a number of Function::Member.
PyObject* get_member(PyObject* self, void*) {
  const simt::Function& function = *reinterpret_cast<FunctionObject*>(self)->function;
  if (function.owner.empty()) Py_RETURN_NONE;
  return Py_BuildValue("(ssi)", function.owner.c_str(), function.type.c_str(), static_cast<int>(function.member));
}
PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<compiled function %s>",
                              reinterpret_cast<FunctionObject*>(self)->function->name.c_str());
}
PyGetSetDef properties[] = {{"__name__", get_name, nullptr, nullptr, nullptr},
                            {"__doc__", get_doc, nullptr, nullptr, nullptr},
                            {"member", get_member, nullptr, nullptr, nullptr},
                            {}};
PyTypeObject function_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

// ---- memory ----

// torch's CPU allocator: guards new tensors while `on`, else passes on to the usual allocator.
struct GuardAllocator final : c10::Allocator {
  c10::Allocator* usual = nullptr;
  bool on = false;

  static void free(void* pointer) { simt::release(pointer); }
  c10::DataPtr allocate(std::size_t bytes) override {
    // a monitor may want to know who writes what, so that all memory is listed
    if (!(on || simt::monitored()) || bytes == 0) return usual->allocate(bytes);
    void* pointer = simt::allocate_at(bytes, nullptr);
    TORCH_CHECK_WITH(OutOfMemoryError, pointer, "There is not enough memory for a tensor of ",
                     (bytes + (1 << 20) - 1) >> 20, " MiB.");
    return {pointer, pointer, &free, c10::Device(c10::DeviceType::CPU)};
  }
  // oneDNN and others free raw pointers through this, including those allocated while no guard was on.
  c10::DeleterFnPtr raw_deleter() const override { return &raw_free; }
  static void raw_free(void* pointer);
  void copy_data(void* to, const void* from, std::size_t bytes) const override { default_copy_data(to, from, bytes); }
};

GuardAllocator& allocator() {
  static auto* instance = new GuardAllocator;  // never destroyed: tensors may outlive it
  return *instance;
}

void GuardAllocator::raw_free(void* pointer) {
  if (!simt::release(pointer)) allocator().usual->raw_deleter()(pointer);
}

// ---- the module's functions ----

PyObject* load(PyObject*, PyObject* args) {
  const char* path;
  int mode;
  PyObject *owner, *classes = nullptr;
  if (!PyArg_ParseTuple(args, "siO|O!", &path, &mode, &owner, &PyDict_Type, &classes)) return nullptr;
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    PyErr_SetString(PyExc_ImportError, dlerror());
    return nullptr;
  }
  auto fill = reinterpret_cast<void (*)(void*)>(dlsym(handle, "simt_functions"));
  auto kernels = static_cast<const char*>(dlsym(handle, "simt_kernel_names"));
  auto shared = static_cast<const char*>(dlsym(handle, "simt_shared_names"));
  if (!fill) {
    PyErr_SetString(PyExc_ImportError, "no functions");
    return nullptr;
  }
  simt::register_module(reinterpret_cast<const void*>(fill), kernels, shared);
  std::vector<simt::Function> functions;
  fill(&functions);
  THPObjectPtr result(PyDict_New());
  for (auto& function : functions) {
    const std::string name = function.name;
    if (function.is_value) {
      THPObjectPtr value(to_python(function.call({}), classes));
      if (!value || PyDict_SetItemString(result.get(), name.c_str(), value.get()) != 0) return nullptr;
      continue;
    }
    auto* object = PyObject_New(FunctionObject, &function_type);
    if (!object) return nullptr;
    object->function = new simt::Function(std::move(function));
    object->mode = mode;
    object->probed = dlsym(handle, "simt_probes_accesses") != nullptr;
    object->owner = Py_NewRef(owner);
    object->classes = Py_XNewRef(classes);
    std::fill(std::begin(object->others), std::end(object->others), nullptr);
    PyDict_SetItemString(result.get(), name.c_str(), reinterpret_cast<PyObject*>(object));
    Py_DECREF(object);
  }
  return result.release();
}

PyObject* set_error_maker(PyObject*, PyObject* callable) {
  Py_XDECREF(make_error);
  make_error = Py_NewRef(callable);
  Py_RETURN_NONE;
}

// Starts or stops guarding the memory of new tensors. simt/runtime/library.py sets the kind of guard first.
void install_allocator() {
  GuardAllocator& ours = allocator();
  if (ours.usual) return;
  ours.usual = c10::GetCPUAllocator();
  c10::SetCPUAllocator(&ours, 255);
}

PyObject* guard_tensors(PyObject*, PyObject* on) {
  const int yes = PyObject_IsTrue(on);
  if (yes < 0) return nullptr;
  if (yes) install_allocator();
  allocator().on = yes != 0;
  Py_RETURN_NONE;
}

// ---- what a monitor wants to know ----

// Returns a tensor in the monitor's memory.
PyObject* map_input(PyObject*, PyObject* args) {
  unsigned long long offset;
  PyObject *dtype, *shape;
  if (!PyArg_ParseTuple(args, "KO!O!", &offset, reinterpret_cast<PyObject*>(&THPDtypeType), &dtype, &PyTuple_Type,
                        &shape))
    return nullptr;
  const at::ScalarType type = reinterpret_cast<THPDtype*>(dtype)->scalar_type;
  std::vector<std::int64_t> sizes;
  std::size_t bytes = c10::elementSize(type);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shape); ++i) {
    sizes.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(shape, i)));
    if (PyErr_Occurred()) return nullptr;
    bytes *= static_cast<std::size_t>(sizes.back());
  }
  void* pointer = simt::map_input(offset, bytes);
  if (!pointer) {
    PyErr_SetString(PyExc_MemoryError, "There is no memory for an input.");
    return nullptr;
  }
  return THPVariable_Wrap(
      at::from_blob(pointer, sizes, [](void* at) { simt::release(at); }, at::TensorOptions().dtype(type)));
}

std::uint64_t most_elements(c10::ArrayRef<const c10::IValue> values) {
  std::uint64_t most = 0;
  auto consider = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.layout() == at::kStrided)
      most = std::max(most, static_cast<std::uint64_t>(tensor.numel()));
  };
  for (const c10::IValue& value : values) {
    if (value.isTensor()) consider(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& each : value.toTensorVector()) consider(each);
  }
  return most;
}

// Reports an operator, whichever thread and language call it.
std::unique_ptr<at::ObserverContext> note_operator(const at::RecordFunction& function) {
  if (!simt::obey() || simt::orders().watch <= 0) return nullptr;
  const std::uint64_t elements = most_elements(function.inputs());
  if (elements >= static_cast<std::uint64_t>(simt::orders().watch)) simt::report_operator(function.name(), elements);
  return nullptr;
}

PyObject* report_torch(PyObject*, PyObject*) {
  static bool watching = false;
  if (!std::exchange(watching, true)) {
    install_allocator();
    at::addGlobalCallback(
        at::RecordFunctionCallback(note_operator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
    simt::report_watching();
  }
  Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"map_input", map_input, METH_VARARGS,
     "map_input(offset, dtype, shape) -> tensor: an input in the memory of the monitor"},
    {"report_torch", report_torch, METH_NOARGS, "report torch's operators to the monitor, and know all its memory"},
    {"load", load, METH_VARARGS,
     "load(path, mode, owner, classes) -> {name: function}: open a compiled extension; owner(mode) returns those of "
     "another mode, classes[type] makes an object of a bound class"},
    {"set_error_maker", set_error_maker, METH_O, "set the function that makes an exception from a fault's fields"},
    {"guard_tensors", guard_tensors, METH_O,
     "guard_tensors(on): place new tensors in guarded memory, or stop doing so"},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_simt_bind", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__simt_bind() {
  function_type.tp_name = "simt.CompiledFunction";
  function_type.tp_basicsize = sizeof(FunctionObject);
  function_type.tp_flags = Py_TPFLAGS_DEFAULT;
  function_type.tp_call = call;
  function_type.tp_dealloc = destroy;
  function_type.tp_repr = represent;
  function_type.tp_getset = properties;
  if (PyType_Ready(&function_type) < 0) return nullptr;
  simt::ChangedOptions()->interrupted = interrupted;
  return PyModule_Create(&definition);
}
