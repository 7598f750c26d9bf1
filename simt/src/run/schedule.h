// Switches from a thread that has to wait to the next one. Inline: one stack frame less saves two cache lines per
// switch.
#pragma once

#include <simt/recorder.h>

#include "run/worker.h"

namespace simt {

Fiber* take_fiber(Worker& worker);  // a stack for the threads that have not started

// Continues elsewhere: a thread that is ready, else the threads that have not started, else the scheduler.
// `self` is where to save this stack's pointer.
inline __attribute__((always_inline)) void run_next(Worker& worker, void** self) {
  Block& block = *worker.block;
  if (__builtin_expect(block.ready_count > 0, 1)) {
    const unsigned thread = block.ready[block.ready_from];
    block.ready_from = (block.ready_from + 1) % max_threads;
    // Prefetches the stack of the thread after this one.
    if (--block.ready_count > 0) {
      const auto* after = static_cast<const char*>(block.stack[block.ready[block.ready_from]]);
      for (int line = 0; line < 3; ++line) __builtin_prefetch(after + 64 * line);
    }
    --cursor.waiting;
    cursor.current = thread;
    threadIdx = cursor.places[thread];
    block.wait[thread] = Wait::nothing;
    resume_events(thread);
    if (&block.stack[thread] == self) return;
    worker.fiber = block.fiber[thread];
    simt_switch(self, block.stack[thread]);
  } else if (cursor.next < cursor.count) {
    worker.fiber = take_fiber(worker);
    simt_switch(self, worker.fiber->start);
  } else {
    worker.fiber = nullptr;
    simt_switch(self, worker.main_stack);
  }
}

// Parks the running thread.
inline __attribute__((always_inline)) void wait_for(Wait what, int line) {
  Worker& worker = *this_worker;
  Block& block = *worker.block;
  const unsigned thread = cursor.current;
  block.wait[thread] = what;
  block.line[thread] = line;
  block.fiber[thread] = worker.fiber;
  suspend_events(thread);
  ++cursor.waiting;
  cursor.waited = 1;
  run_next(worker, &block.stack[thread]);
}

// Switches away from the running thread, which is in the ready ring and runs again in its turn.
inline __attribute__((always_inline)) void yield_ready(Worker& worker) {
  suspend_events(cursor.current);
  ++cursor.waiting;
  cursor.waited = 1;
  run_next(worker, &worker.block->stack[cursor.current]);
}

}  // namespace simt
