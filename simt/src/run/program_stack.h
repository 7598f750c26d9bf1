// Runs a program's code on a stack of its own between two fences. What the program writes past the end of a local array
// does not reach the frames of Python and of the runtime, which report the crash.
#pragma once

#include <cstdint>

namespace simt {

// Maps the stack, and starts the thread that calls help(). Returns false where there is no memory for the stack. Called
// once, by the thread that runs the program.
bool prepare_stack(void (*help)());

// Calls entry() on the program's stack. Returns when entry() does, or when it calls leave_stack(), also from a signal
// handler. keep: whether the frames that the last entry() left on the stack stay as they are.
void call_on_stack(void (*entry)(), bool keep);
[[noreturn]] void leave_stack();
bool is_on_stack();  // whether call_on_stack() has not returned

bool is_main_thread();  // which has called prepare_stack()
bool is_forked();  // in a process that the program has forked, which has none of the other threads

// Has help() called, on a thread whose memory is of another part of the heap. A signal handler may call these functions.
void ask_for_help();
[[noreturn]] void park();

// The program's stack: [low, top). Its fences reach from `fenced_low` to `fenced_top`.
struct ProgramStack {
  std::uintptr_t fenced_low, low, top, fenced_top;
};
const ProgramStack& program_stack();

}  // namespace simt
