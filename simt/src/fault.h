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
  bool known = false;             // address and write are
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
// The memory that an access of the launch's kernel was meant for. What was freed may lie where a new tensor's fence is now, and an
// index that is off by one is no use after free: a tensor nearby goes first, unless a pointer into the freed memory is nearer.
struct Place;
Place meant_place(const Launch& launch, std::uintptr_t address);
// How far an address lies from the nearest argument of the kernel that points into `place`; the largest number where none does.
std::uintptr_t from_argument(const Launch& launch, const Place& place, std::uintptr_t address);
void install_handlers();
void use_alternate_stack();
int abort_signal();

}  // namespace simt
