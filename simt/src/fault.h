// What went wrong in a launch: recorded by the thread it happened to, told by Python.
#pragma once

#include <simt/runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace simt {

// A source place as the loader of the module can find it: an address in a module's code.
struct CodePlace {
  std::string module;
  std::uintptr_t offset;
};

struct Fault {
  std::string reason;        // a name of simt.KernelError.reason
  std::string message;
  std::string kernel;
  std::string file;
  int line = 0;              // 0: find it from `code`, or else say where the kernel is defined
  int defined = 0;
  bool in_thread = false;    // block and thread are meaningful
  uint3 block{}, thread{};
  std::vector<CodePlace> code;   // innermost first
};

// What a signal handler may write: no allocation, no locks.
struct RawFault {
  volatile int signal = 0;
  int code = 0;
  bool write = false;
  std::uintptr_t address = 0;
  std::uintptr_t instruction = 0;
  std::uintptr_t frames[16];      // words on the stack that point into code
  unsigned frame_count = 0;
};

void record(Fault fault);          // the first one of a launch is kept
bool take_fault(Fault& out);       // the kept one, if any, and forgets it
bool fault_pending();

// Turns what the handler saw into words; runs on the scheduler's stack.
struct Worker;
void explain(Worker& worker);
void install_handlers();
void use_alternate_stack();
int abort_signal();

}  // namespace simt
