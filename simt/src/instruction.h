// What the instruction at fault was about to touch, for the faults of which the processor tells no address.
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

// What a SIGSEGV or SIGBUS was about; called in its handler.
Touched touched(const siginfo_t* info, const ucontext_t* context);

// Whether a program's memory can lie at an address: the processors use the lower 47 or 48 bits.
inline bool possible(std::uintptr_t address) {
#if defined(__x86_64__)
  return address < std::uintptr_t(1) << 47;
#else
  return (address & 0x00ffffffffffffff) < std::uintptr_t(1) << 48;      // the highest byte is a tag, which the processor ignores
#endif
}

}  // namespace simt
