// Records the fault of a launch, from the signal handler to the message of the Python exception.
#pragma once

#include <simt/runtime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace simt {

// A place in the code of a module, from which its source line can be found.
struct CodePlace {
  std::string module;
  std::uintptr_t offset;
};

struct Fault {
  std::string reason;        // a name of simt.KernelError.reason
  std::string message;
  std::string kernel;
  std::string file;
  int line = 0;              // 0: find it from `code`, or else use the line of the kernel's definition
  int defined = 0;
  bool in_thread = false;    // block and thread are meaningful
  uint3 block{}, thread{};
  std::vector<CodePlace> code;   // innermost first
};

// Filled by a signal handler, which may not allocate or lock.
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

// Describes what the handler has recorded. Runs on the scheduler's stack.
struct Worker;
void explain(Worker& worker);
// Returns the memory that an access of the launch's kernel was probably meant for. Freed memory may be where a new
// tensor's fence is now, and an index that is off by one is not a use after free: a near tensor is preferred, unless a
// pointer into the freed memory is nearer.
struct Place;
Place meant_place(const Launch& launch, std::uintptr_t address);
// Returns the name of the kernel's parameter for an argument, empty if it is not known. The last parameter may be a pack,
// which has all further arguments.
std::string parameter_name(const Launch& launch, unsigned argument);
// Returns the distance of an address from the nearest argument of the kernel that points into `place`, or the largest
// number if none does.
std::uintptr_t from_argument(const Launch& launch, const Place& place, std::uintptr_t address);
void install_handlers();
// Gives the calling thread a stack for its signal handlers, on which the end of its own can be reported.
void use_alternate_stack();
// The same as long as the object lives.
struct AlternateStack {
  AlternateStack() { use_alternate_stack(); }
  ~AlternateStack();
  AlternateStack(const AlternateStack&) = delete;
};
int abort_signal();

}  // namespace simt
