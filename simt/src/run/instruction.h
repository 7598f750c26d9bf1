// Finds the address that the faulting instruction accesses, if the processor does not report it.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace simt {

struct Touched {
  std::uintptr_t address = 0;
  bool write = false;
  bool known = false;       // address and write are
};

// Returns the access that caused a SIGSEGV or SIGBUS. Called in its handler.
Touched touched(const siginfo_t* info, const ucontext_t* context);

// Returns whether memory can have an address: processors use the lower 47 or 48 bits.
inline bool possible(std::uintptr_t address) {
#if defined(__x86_64__)
  return address < std::uintptr_t(1) << 47;
#else
  return (address & 0x00ffffffffffffff) < std::uintptr_t(1)
                                              << 48;      // the highest byte is a tag, which the processor ignores
#endif
}

}  // namespace simt
