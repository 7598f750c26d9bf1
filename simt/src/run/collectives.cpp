// Implements barriers, warp exchanges and active masks, in which threads of a block wait for each other.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "run/schedule.h"

namespace simt {
namespace {

std::string lines(int line) { return "line " + std::to_string(line); }

std::string name_of(unsigned thread, const char* word = "thread ") { return word + coordinates(thread, blockDim); }

// Returns the lanes of `warp` that have returned or do not exist.
unsigned gone_lanes(const Block& block, unsigned warp) {
  unsigned gone = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned thread = warp * 32 + lane;
    if (thread >= block.count || block.gone(thread)) gone |= 1u << lane;
  }
  return gone;
}

Meeting* new_meeting(Worker& worker, Block& block, unsigned warp, unsigned mask, const char* what, int line) {
  const Critical critical(worker);
  Meeting* meeting;
  if (block.free_meetings.empty()) {
    block.all_meetings.push_back(std::make_unique<Meeting>());
    block.free_meetings.reserve(block.all_meetings.size() + 1);
    meeting = block.all_meetings.back().get();
  } else {
    meeting = block.free_meetings.back();
    block.free_meetings.pop_back();
  }
  meeting->mask = mask;
  meeting->arrived = 0;
  meeting->what = what;
  meeting->line = line;
  meeting->readers = 0;
  block.meetings[warp].push_back(meeting);
  return meeting;
}

void release_result(Block& block, unsigned thread) {
  Meeting* held = block.holds[thread];
  if (!held) return;
  block.holds[thread] = nullptr;
  if (--held->readers == 0) block.free_meetings.push_back(held);
}

bool complete(const Block& block, const Meeting& meeting, unsigned warp) {
  for (unsigned missing = meeting.mask & ~meeting.arrived; missing; missing &= missing - 1) {
    const unsigned thread = warp * 32 + static_cast<unsigned>(__builtin_ctz(missing));
    if (thread < block.count && !block.gone(thread)) return false;
  }
  return true;
}

// Returns whether a meeting orders the lanes' accesses to memory. An exchange of values does not.
bool synchronizes(const char* what) {
  return std::strcmp(what, "__syncwarp()") == 0 || std::strcmp(what, "sync()") == 0;
}

WarpCall& call_of(Block& block, unsigned warp, const char* what, int line) {
  auto& calls = block.calls[warp];
  for (WarpCall& call : calls)
    if (call.line == line && std::strcmp(call.what, what) == 0) return call;
  calls.push_back({what, line, {}, {}});
  return calls.back();
}

void note_call(Worker& worker, Block& block, unsigned thread, unsigned mask, const char* what, int line) {
  const Critical critical(worker);
  WarpCall& call = call_of(block, thread / 32, what, line);
  ++call.times[thread % 32];
  call.mask[thread % 32] = mask;
}

// Makes every arrived lane except `except` ready. All arrived lanes hold the result.
void finish(Block& block, Meeting* meeting, unsigned warp, unsigned except) {
  if (CheckObserver* checker = this_worker->checker) {
    if (synchronizes(meeting->what)) checker->warp_synced(warp, meeting->arrived);
    if (meeting->mask != meeting->arrived) {
      const Critical critical(*this_worker);
      checker->lanes_missing(*meeting, warp, call_of(block, warp, meeting->what, meeting->line));
    }
  }
  auto& open = block.meetings[warp];
  open.erase(std::find(open.begin(), open.end(), meeting));
  meeting->readers = static_cast<unsigned>(__builtin_popcount(meeting->arrived));
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned lane = cursor.order ? 31 - i : i;
    if (!(meeting->arrived >> lane & 1)) continue;
    const unsigned thread = warp * 32 + lane;
    block.holds[thread] = meeting;
    if (thread != except) block.make_ready(thread);
  }
}

}  // namespace

// simt_barrier (fiber.cpp) calls this.
extern "C" void simt_arrive(int line) {
  Worker& worker = *this_worker;
  if (__builtin_expect(worker.counter != nullptr, 0))
    record_together(worker, Together::barrier, "__syncthreads()", line);
  Block& block = *worker.block;
  if (block.barrier_arrived == 0) {
    block.barrier_line = line;
    block.barrier_mixed = false;
  } else if (line != block.barrier_line) {
    block.barrier_mixed = true;
  }
  if (++block.barrier_arrived < block.count || block.barrier_mixed) {
    wait_for(Wait::barrier, line);
    return;
  }
  block.barrier_arrived = 0;
  if (__builtin_expect(worker.checker != nullptr, 0)) worker.checker->barrier(line);
  block.vote_result = static_cast<int>(block.votes);
  block.votes = 0;
  // All threads resume in the starting order, the calling thread at its own place in it.
  block.fiber[cursor.current] = worker.fiber;
  std::memset(block.wait, static_cast<int>(Wait::ready), block.count * sizeof(block.wait[0]));
  std::memcpy(block.ready, worker.turns.data(), block.count * sizeof(block.ready[0]));
  block.ready_from = 0;
  block.ready_count = block.count;
  yield_ready(worker);
}

namespace {

std::vector<unsigned> threads_where(const Block& block, auto predicate) {
  std::vector<unsigned> threads;
  for (unsigned t = 0; t < block.count; ++t)
    if (predicate(t)) threads.push_back(t);
  return threads;
}

std::string others(std::size_t n) {
  return n == 1 ? "" : " and " + std::to_string(n - 1) + (n == 2 ? " other" : " others");
}

void report_barrier(Block& block) {
  const auto at_barrier = threads_where(block, [&](unsigned t) { return block.wait[t] == Wait::barrier; });
  const auto returned = threads_where(block, [&](unsigned t) { return block.gone(t); });
  const unsigned first = at_barrier.front();
  const int line = block.line[first];
  if (!returned.empty()) {
    note_failure(
        "barrier_divergence",
        name_of(first, "Thread ") + others(at_barrier.size()) + (at_barrier.size() == 1 ? " waits" : " wait") +
            " at the __syncthreads() in " + lines(line) + ", but " + name_of(returned.front()) +
            others(returned.size()) +
            " returned from the kernel without reaching it. Every thread of a block must reach every __syncthreads().",
        line, returned.front());
    return;
  }
  for (unsigned t = 0; t < block.count; ++t) {
    if (block.wait[t] == Wait::barrier && block.line[t] == line) continue;
    const char* where = block.wait[t] == Wait::barrier ? " waits at another one, in "
                        : block.wait[t] == Wait::grid  ? " waits for the whole grid in "
                        : block.wait[t] == Wait::place ? " waits for other threads in "
                                                       : " waits for its warp in ";
    note_failure("barrier_divergence",
                 name_of(first, "Thread ") + " waits at the __syncthreads() in " + lines(line) + ", while " +
                     name_of(t) + where + lines(block.line[t]) +
                     ". Every thread of a block must reach the same __syncthreads().",
                 line, t);
    return;
  }
}

void report_meeting(Block& block, const Meeting& meeting, unsigned warp) {
  const unsigned here = static_cast<unsigned>(__builtin_ctz(meeting.arrived));
  const unsigned missing = meeting.mask & ~meeting.arrived & ~gone_lanes(block, warp);
  const unsigned lane = static_cast<unsigned>(__builtin_ctz(missing ? missing : 1));
  const unsigned thread = warp * 32 + lane;
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%08x", meeting.mask);
  std::string elsewhere = "never makes the call";
  if (block.wait[thread] == Wait::barrier) elsewhere = "waits at the barrier in " + lines(block.line[thread]);
  if (block.wait[thread] == Wait::grid) elsewhere = "waits for the whole grid in " + lines(block.line[thread]);
  if (block.wait[thread] == Wait::place)
    elsewhere = std::string("waits in ") + block.place_name[thread] + " in " + lines(block.line[thread]);
  if (block.wait[thread] == Wait::exchange)
    for (const Meeting* other : block.meetings[warp])
      if (other->arrived >> lane & 1) {
        char theirs[16];
        std::snprintf(theirs, sizeof theirs, "0x%08x", other->mask);
        elsewhere = std::string("is in ") + other->what + " in " + lines(other->line) + " with mask " + theirs;
      }
  note_failure("warp_divergence",
               name_of(warp * 32 + here, "Thread ") + " (lane " + std::to_string(here) + ") waits in " + meeting.what +
                   " in " + lines(meeting.line) + " for lane " + std::to_string(lane) + ", which is in its mask " +
                   mask + ", but that lane " + elsewhere + ". All lanes in a mask must make the same call together.",
               meeting.line, warp * 32 + here);
}

void report_sleeper(Block& block, unsigned thread) {
  const auto alike = threads_where(
      block, [&](unsigned t) { return block.wait[t] == Wait::place && block.place[t] == block.place[thread]; });
  note_failure(
      "barrier_divergence",
      name_of(thread, "Thread ") + others(alike.size()) + (alike.size() == 1 ? " waits" : " wait") + " in " +
          block.place_name[thread] + " in " + lines(block.line[thread]) +
          ", but no thread is left that could arrive there. The number of arrivals must equal the expected count.",
      block.line[thread], thread);
}

}  // namespace

int barrier_vote(Vote vote, bool predicate, int line) {
  Block& block = *this_worker->block;
  block.votes += predicate;
  simt_arrive(line);
  const int yes = block.vote_result;
  if (vote == Vote::count) return yes;
  return vote == Vote::any ? yes > 0 : yes == static_cast<int>(block.count);
}

void grid_barrier(int line) {
  if (this_worker->counter) record_together(*this_worker, Together::grid_barrier, "grid sync()", line);
  ++this_worker->block->grid_arrived;
  wait_for(Wait::grid, line);
}

Exchange exchange(unsigned mask, std::uint64_t value, const char* what, int line) {
  Worker& worker = *this_worker;
  if (worker.counter) record_together(worker, Together::exchange, what, line);
  Block& block = *worker.block;
  const unsigned thread = cursor.current, warp = thread / 32, lane = thread % 32;
  release_result(block, thread);
  if (!(mask >> lane & 1)) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", mask);
    fail("warp_divergence",
         name_of(thread, "Thread ") + " (lane " + std::to_string(lane) + ") calls " + what + " with mask " + text +
             ", which does not include the lane itself. The mask must include every lane that makes the call.",
         line, thread);
  }
  if (worker.checker) note_call(worker, block, thread, mask, what, line);
  Meeting* meeting = nullptr;
  for (Meeting* open : block.meetings[warp])
    if (open->mask == mask && open->line == line && (open->what == what || std::strcmp(open->what, what) == 0))
      meeting = open;
  if (!meeting) meeting = new_meeting(worker, block, warp, mask, what, line);
  meeting->value[lane] = value;
  meeting->arrived |= 1u << lane;
  if (complete(block, *meeting, warp)) {
    finish(block, meeting, warp, thread);
  } else {
    wait_for(Wait::exchange, line);
  }
  const Meeting* result = block.holds[thread];
  return {result->value, result->arrived};
}

void thread_ended(unsigned linear) {
  if (cursor.waiting == 0) return;
  cursor.current = no_thread;
  Block& block = *this_worker->block;
  const unsigned warp = linear / 32;
  auto& open = block.meetings[warp];
  for (std::size_t i = 0; i < open.size();) {
    Meeting* meeting = open[i];
    if (complete(block, *meeting, warp))
      finish(block, meeting, warp, max_threads);
    else
      ++i;
  }
}

unsigned active_mask(int line) {
  wait_for(Wait::active_mask, line);
  return this_worker->block->answer[cursor.current];
}

// Called when no other thread can run: lanes of a warp that wait at the same __activemask() are active together.
bool resolve_active_masks(Block& block) {
  bool any = false;
  for (unsigned thread = 0; thread < block.count; ++thread) {
    if (block.wait[thread] != Wait::active_mask) continue;
    any = true;
    unsigned together = 0;
    const unsigned start = thread / 32 * 32, end = std::min(start + 32, block.count);
    for (unsigned t = start; t < end; ++t)
      if (block.wait[t] == Wait::active_mask && block.line[t] == block.line[thread]) together |= 1u << (t - start);
    for (unsigned t = start; t < end; ++t)
      if (together >> (t - start) & 1) {
        block.answer[t] = together;
        block.make_ready(t);
      }
  }
  return any;
}

void report_deadlock(Block& block) {
  // If lanes of a warp wait for a lane that waits at a barrier, the warp's call is the cause.
  for (unsigned warp = 0; warp < max_warps; ++warp)
    if (!block.meetings[warp].empty()) return report_meeting(block, *block.meetings[warp].front(), warp);
  for (unsigned t = 0; t < block.count; ++t)
    if (block.wait[t] == Wait::barrier) return report_barrier(block);
  for (unsigned t = 0; t < block.count; ++t)
    if (block.wait[t] == Wait::place) return report_sleeper(block, t);
  unsigned waiting = 0, returned = 0;
  for (unsigned t = 0; t < block.count; ++t) {
    if (block.wait[t] == Wait::grid) waiting = t;
    if (block.gone(t)) returned = t;
  }
  note_failure("barrier_divergence",
               name_of(waiting, "Thread ") + " waits at the grid-wide sync() in " + lines(block.line[waiting]) +
                   ", but " + name_of(returned) +
                   " of the same block returned without reaching it. Every thread of the grid must reach it.",
               block.line[waiting], returned);
}

void* dynamic_shared() { return this_worker->dynamic_base; }
void* dynamic_shared(const char* name, std::size_t element) {
  if (CheckObserver* checker = this_worker->checker) checker->name_dynamic_shared(name, element);
  return this_worker->dynamic_base;
}
std::size_t dynamic_shared_size() { return this_worker->job->launch->config.shared; }
bool in_kernel() { return this_worker && this_worker->in_kernel; }
bool cooperative_launch() { return this_worker->job->launch->cooperative; }

void device_assert(const char* expression, int line) {
  const std::string text =
      std::string("The assertion `") + expression + "` in line " + std::to_string(line) + " failed.";
  if (!this_worker || !this_worker->in_kernel) throw std::runtime_error(text);
  fail("device_assert", text, line, cursor.current);
}

void misused(const char* reason, const char* text, int line) { fail(reason, text, line, cursor.current); }

void sleep_at(const volatile void* place, const char* what, int line) {
  Block& block = *this_worker->block;
  block.place[cursor.current] = place;
  block.place_name[cursor.current] = what;
  wait_for(Wait::place, line);
}

void wake(const volatile void* place) {
  Block& block = *this_worker->block;
  if (cursor.waiting == 0) return;
  for (unsigned t = 0; t < block.count; ++t)
    if (block.wait[t] == Wait::place && block.place[t] == place) block.make_ready(t);
}

void let_others_run(int line) {
  Worker& worker = *this_worker;
  Block& block = *worker.block;
  const unsigned thread = cursor.current;
  block.line[thread] = line;
  block.fiber[thread] = worker.fiber;
  block.make_ready(thread);
  ++cursor.waiting;
  cursor.waited = 1;
  if (cursor.next < cursor.count) {
    worker.fiber = take_fiber(worker);
    simt_switch(&block.stack[thread], worker.fiber->start);
    return;
  }
  if (block.ready_count == 1) sched_yield();
  run_next(worker, &block.stack[thread]);
}

void trap(int line) {
  fail("device_assert", "The kernel called __trap() in line " + std::to_string(line) + ".", line, cursor.current);
}

}  // namespace simt
