// Declares stacks and the switch between them. A GPU thread gets its own stack when it has to wait.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

// Saves the callee-saved registers and the stack pointer in *save and continues on `to`.
extern "C" void simt_switch(void** save, void* to);
// Where a fault handler continues after it has set the stack pointer to a saved one: the second half of simt_switch.
extern "C" void simt_resume();

#if defined(__x86_64__)
inline constexpr std::size_t saved_words = 6;
#elif defined(__aarch64__)
inline constexpr std::size_t saved_words = 20;
#else
#error "simt runs on x86-64 and aarch64 processors."
#endif

// Returns a saved stack pointer. Switching to it calls entry() on the stack that ends at `top`.
void* new_stack_pointer(void* top, void (*entry)());

}  // namespace simt
