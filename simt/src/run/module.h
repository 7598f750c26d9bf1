// Declares a loaded extension: the addresses of its code and the static shared arrays of its kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <simt/runtime.h>

namespace simt {

struct SharedArray {
  std::string name;
  std::string owner;  // the function's name, without template arguments and namespaces; empty outside of functions
  std::string function;  // the function as a whole, so that instances of a template differ
  std::uintptr_t code;  // its address, 0 if the file does not contain it
  std::size_t offset;  // in the module's thread-local block
  std::size_t bytes;
};

// A variable of the extension itself.
struct Variable {
  // As it is declared. Kernels cannot write constants, and cannot use variables of the host.
  enum Kind : std::uint8_t { device, constant, host };
  std::string name;  // empty for one of the compiler's or of a header's
  std::size_t offset, bytes;
  Kind kind = device;
};

// The facts about a kernel that a launch through a pointer cannot get from the pointer.
struct KernelHead {
  std::string name;  // with template arguments
  std::string parameters;  // their names, comma separated; empty where unknown
  int defined = 0;  // its line, likewise
  int max_threads = 0;  // of __launch_bounds__; 0 if it has none, or not a number
};

struct Module {
  std::string path;
  std::uintptr_t base;  // load address
  std::uintptr_t low, high;  // its mapped range
  std::uintptr_t data_low = 0, data_high = 0;  // the writable part of it
  std::size_t tls_id;
  std::size_t tls_bytes = 0;  // of a thread's block of shared arrays
  std::vector<SharedArray> shared;
  std::vector<SharedArray> guards;  // the compiler's own, of shared arrays of class type
  std::vector<std::string> kernels;
  std::vector<Variable> variables;
  std::map<std::uintptr_t, KernelHead> heads;  // by the kernel's address
  bool probed = false;  // it reports every access to the checks

  bool contains(std::uintptr_t address) const { return address >= low && address < high; }
  char* address_of(const SharedArray& array) const;  // the calling thread's copy
  bool in_thread_block(std::uintptr_t address) const;  // among the calling thread's shared arrays, or between them
};

bool find_library(const void* symbol, Module& module);  // finds the mapping of the library that contains `symbol`

// Registers the module that contains `symbol`. `kernels` are the names of its kernels and `shared` those of its static
// shared arrays, with a comma after each. heads: name, parameters, line and bounds of each kernel, separated by tabs, one
// kernel per line.
SIMT_API const Module* register_module(const void* symbol, const char* kernels, const char* shared,
                                       const char* heads = nullptr);
const Module* module_of(std::uintptr_t code);
std::string base_name(const std::string& function);  // "void ns::k<float>(int)" -> "k"

}  // namespace simt
