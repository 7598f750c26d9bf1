// A loaded extension: where its code lies and which static shared arrays its kernels have.
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
  std::string owner;      // the function's name, without template arguments and namespaces; empty outside of functions
  std::string function;   // the function as a whole, so that instances of a template differ
  std::uintptr_t code;    // its address, 0 where the file does not tell
  std::size_t offset;     // in the module's thread-local block
  std::size_t bytes;
};

// A variable of the extension itself, __device__ or __constant__ in the source.
struct Variable {
  std::string name;      // empty for one of the compiler's or of a header's
  std::size_t offset, bytes;
};

// What a launch through a pointer can't tell from the pointer.
struct KernelHead {
  std::string name;         // with template arguments
  std::string parameters;   // their names, comma separated; empty where the build does not tell
  int defined = 0;          // its line, likewise
};

struct Module {
  std::string path;
  std::uintptr_t base;            // load address
  std::uintptr_t low, high;       // its mapped range
  std::uintptr_t data_low = 0, data_high = 0;   // in it, what may be written
  std::size_t tls_id;
  std::vector<SharedArray> shared;
  std::vector<SharedArray> guards;      // the compiler's own, of shared arrays of class type
  std::vector<std::string> kernels;
  std::vector<Variable> variables;
  std::map<std::uintptr_t, KernelHead> heads;   // by the kernel's address

  bool contains(std::uintptr_t address) const { return address >= low && address < high; }
  char* address_of(const SharedArray& array) const;   // the calling thread's copy
};

bool find_library(const void* symbol, Module& module);   // where the library that holds `symbol` is mapped

// Registers the module that holds `symbol`; `kernels` are the names of its kernels and `shared` those of its static
// shared arrays, a comma after each. heads: name, parameters and line of each kernel, a tab after the first two, one a line.
SIMT_API const Module* register_module(const void* symbol, const char* kernels, const char* shared, const char* heads = nullptr);
const Module* module_of(std::uintptr_t code);
std::string base_name(const std::string& function);   // "void ns::k<float>(int)" -> "k"

}  // namespace simt
