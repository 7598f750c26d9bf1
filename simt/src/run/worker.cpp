// Runs blocks on one operating-system thread: a block's threads as a loop until one has to wait, then as fibers.
#include "run/options.h"
#include "run/schedule.h"

#include <sys/mman.h>
#include <unwind.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <numeric>

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

namespace simt {

__thread Cursor cursor;
__thread Worker* this_worker;

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stack_bytes = 64 * 1024;
constexpr std::size_t fenced_fibers = 2048;       // more stacks share fences: the operating system limits mappings

// Offsets each stack: with a stride that is a power of two all would share the same cache sets.
std::size_t stagger(std::size_t i) { return (i % 31) * 192; }

Fiber* new_fiber(Worker& worker) {
  const Critical critical(worker);
  const std::size_t i = worker.fibers.size();
  const bool fence = i < fenced_fibers;
  const std::size_t bytes = stack_bytes + 2 * page;
  if (!worker.stacks) {
    void* room = mmap(nullptr, fenced_fibers * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    worker.stacks = room == MAP_FAILED ? nullptr : static_cast<char*>(room);
    worker.stacks_bytes = worker.stacks ? fenced_fibers * bytes : 0;
  }
  char* const within = worker.stacks && i < fenced_fibers ? worker.stacks + i * bytes : nullptr;
  char* map = static_cast<char*>(mmap(within, bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (within ? MAP_FIXED : 0), -1, 0));
  if (map == MAP_FAILED)
    fail("launch_error", "There is not enough memory for the stacks of waiting threads.", 0, cursor.current);
  if (fence) mprotect(map, page, PROT_NONE);
  auto fiber = std::make_unique<Fiber>();
  fiber->low = map + page;
  fiber->top = map + bytes - stagger(i);
  worker.fibers.push_back(std::move(fiber));
  worker.idle.reserve(worker.fibers.capacity());
  return worker.fibers.back().get();
}

void fiber_main() {
  Worker& worker = *this_worker;
  std::string thrown;
  try {
    worker.job->launch->threads(worker.job->launch->body);
  } catch (const std::exception& error) {
    thrown = std::string("The kernel threw a C++ exception, which a GPU does not support: ") + error.what();
  } catch (...) {
    thrown = "The kernel threw a C++ exception, which a GPU does not support.";
  }
  if (!thrown.empty()) fail("device_assert", std::move(thrown), 0, cursor.current);
  // No thread is left to start; this stack is free as soon as we have left it.
  Fiber* self = worker.fiber;
  worker.idle.push_back(self);
  void* nowhere;
  run_next(worker, &nowhere);
  __builtin_unreachable();
}

void enter(Worker& worker, Block& block) {
  worker.block = &block;
  blockIdx = {block.index.x, block.index.y, block.index.z};
}

void poison_words(char* from, std::size_t bytes) {
  auto* words = reinterpret_cast<std::uint32_t*>(from);
  std::fill(words, words + bytes / 4, shared_poison);
  std::memset(from + bytes / 4 * 4, 0xA4, bytes % 4);
}

void poison_shared(Worker& worker, const Job& job) {
  for (const auto& array : job.arrays) poison_words(job.module->address_of(array), array.bytes);
  if (job.launch->config.shared > 0) poison_words(worker.dynamic_base, job.launch->config.shared);
}

dim3 index_of(std::uint64_t linear, const dim3& grid) {
  return dim3(static_cast<unsigned>(linear % grid.x), static_cast<unsigned>(linear / grid.x % grid.y),
              static_cast<unsigned>(linear / grid.x / grid.y));
}

void start_block(Worker& worker, Block& block, const Job& job, std::uint64_t linear) {
  const dim3 index = index_of(linear, job.launch->config.grid);
  const Config& config = job.launch->config;
  const unsigned count = config.block.x * config.block.y * config.block.z;
  block.reset(index, count);
  cursor = {};
  cursor.count = count;
  cursor.order = worker.order.empty() ? nullptr : worker.order.data();
  cursor.places = worker.places.data();
  cursor.flat = !cursor.order && config.block.y == 1 && config.block.z == 1;
  threadIdx = {0, 0, 0};
  poison_shared(worker, job);
  enter(worker, block);
  if (worker.checker) worker.checker->block_starts(linear);
}

// Runs fibers until every thread has returned (true) or all others wait at the grid's barrier (false).
bool drive(Worker& worker, Block& block) {
  for (;;) {
    worker.in_kernel = true;
    if (!worker.abort_pending) run_next(worker, &worker.main_stack);
    worker.in_kernel = false;
    if (worker.abort_pending || worker.job->cancelled.load(std::memory_order_relaxed)) return true;
    if (block.ready_count > 0 || cursor.next < cursor.count) continue;
    if (cursor.waiting == 0) return true;
    cursor.current = no_thread;
    if (worker.counter && worker.counter->make_room(block)) continue;
    if (resolve_active_masks(block)) continue;
    if (block.grid_arrived == cursor.waiting && block.grid_arrived == block.count) return false;
    report_deadlock(block);
    return true;
  }
}

std::uint64_t scheduled(const Job& job, std::uint64_t position) {
  if (job.schedule == 1) return job.blocks - 1 - position;
  if (job.schedule == 2) return (position + job.seed % job.blocks) % job.blocks;
  return position;
}

void prepare(Worker& worker, Job& job) {
  const Config& config = job.launch->config;
  const unsigned count = config.block.x * config.block.y * config.block.z;
  worker.job = &job;
  worker.abort_pending = false;
  worker.spared = 0;
  worker.fault = RawFault{};
  worker.checker = nullptr;
  blockDim = config.block;
  gridDim = config.grid;
  // A GPU aligns it as the source asks, which is 1024 bytes for swizzled tiles. A small one keeps its end near the fence.
  const std::size_t alignment = config.shared > 1024 ? 1024 : 128;
  worker.dynamic_base = worker.dynamic_shared - (config.shared + alignment - 1) / alignment * alignment;
  const unsigned x = config.block.x, y = config.block.y;
  worker.places.resize(count);
  for (unsigned i = 0, at[3] = {0, 0, 0}; i < count; ++i) {
    worker.places[i] = {at[0], at[1], at[2]};
    if (++at[0] == x) {
      at[0] = 0;
      if (++at[1] == y) {
        at[1] = 0;
        ++at[2];
      }
    }
  }
  worker.order.clear();
  worker.turns.resize(count);
  std::iota(worker.turns.begin(), worker.turns.end(), std::uint16_t(0));
  if (job.schedule != 0) {
    worker.order.resize(count);
    std::iota(worker.order.begin(), worker.order.end(), 0u);
    if (job.schedule == 1)
      std::reverse(worker.order.begin(), worker.order.end());
    else {
      std::uint64_t state = job.seed * 6364136223846793005ull + 1442695040888963407ull;
      for (unsigned i = count; i-- > 1;) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(worker.order[i], worker.order[(state >> 33) % (i + 1)]);
      }
    }
    std::copy(worker.order.begin(), worker.order.end(), worker.turns.begin());
    worker.ranks.resize(count);
    for (unsigned i = 0; i < count; ++i) worker.ranks[worker.order[i]] = i;
  }
}

// Once the shared memory has its place.
void prepare_checks(Worker& worker, Job& job) {
  if (options().mode != Mode::check || !job.module) return;
  if (!worker.own_checker) worker.own_checker = make_checker(worker);
  worker.checker = worker.own_checker.get();
  worker.checker->begin(job);
}

void prepare_counts(Worker& worker, Job& job) {
  worker.counter = nullptr;
  if (!job.counting) return;
  auto& own = worker.own_counters[job.module];
  if (!own) own = make_counter(worker);
  worker.counter = own.get();
  worker.counter->begin(job);
}

// After a block was abandoned its stacks are idle again.
void reclaim(Worker& worker) {
  worker.idle.clear();
  for (auto& fiber : worker.fibers) worker.idle.push_back(fiber.get());
}

Block& block_at(Worker& worker, std::size_t i) {
  while (worker.blocks.size() <= i) worker.blocks.push_back(std::make_unique<Block>());
  return *worker.blocks[i];
}

// Saves the state of a block while others of the same worker run.
void save(Worker& worker, Block& block, const Job& job) {
  block.cursor = cursor;
  block.shared.clear();
  for (const auto& array : job.arrays) {
    char* at = job.module->address_of(array);
    block.shared.insert(block.shared.end(), at, at + array.bytes);
  }
  block.shared.insert(block.shared.end(), worker.dynamic_base, worker.dynamic_base + job.launch->config.shared);
}

void restore(Worker& worker, Block& block, const Job& job) {
  cursor = block.cursor;
  enter(worker, block);
  std::size_t offset = 0;
  for (const auto& array : job.arrays) {
    std::memcpy(job.module->address_of(array), block.shared.data() + offset, array.bytes);
    offset += array.bytes;
  }
  std::memcpy(worker.dynamic_base, block.shared.data() + offset, job.launch->config.shared);
}

}  // namespace

void Block::reset(dim3 where, unsigned threads) {
  index = where;
  count = threads;
  ready_from = ready_count = 0;
  barrier_arrived = grid_arrived = 0;
  barrier_mixed = false;
  votes = 0;
  std::memset(wait, 0, threads * sizeof(wait[0]));
  std::memset(holds, 0, threads * sizeof(holds[0]));
  if (!copies.empty()) copies.clear();
  placed_copies.clear();
  placed_from = 0;
  if (!all_meetings.empty()) {
    for (auto& warp : meetings) warp.clear();
    for (auto& warp : calls) warp.clear();
    free_meetings.clear();
    for (auto& meeting : all_meetings) free_meetings.push_back(meeting.get());
  }
}

Fiber* take_fiber(Worker& worker) {
  Fiber* fiber;
  if (worker.idle.empty()) {
    fiber = new_fiber(worker);
  } else {
    fiber = worker.idle.back();
    worker.idle.pop_back();
  }
  fiber->start = new_stack_pointer(fiber->top, fiber_main);
  return fiber;
}

void leave_kernel(Worker& worker) {
  worker.in_kernel = false;
  worker.critical = false;
  worker.abort_pending = true;      // this worker's share of the launch is over
  worker.job->cancelled = true;
  void* nowhere;
  simt_switch(&nowhere, worker.main_stack);
  __builtin_unreachable();
}

void run_blocks(Worker& worker, Job& job) {
  prepare(worker, job);
  prepare_checks(worker, job);
  prepare_counts(worker, job);
  Block& block = block_at(worker, 0);
  for (;;) {
    const std::uint64_t from = job.next.fetch_add(job.chunk, std::memory_order_relaxed);
    if (from >= job.blocks) break;
    const std::uint64_t to = std::min(job.blocks, from + job.chunk);
    for (std::uint64_t i = from; i < to; ++i) {
      if (job.cancelled.load(std::memory_order_relaxed)) break;
      if (worker.counter && !worker.counter->block_starts(i, to)) continue;
      start_block(worker, block, job, scheduled(job, i));
      if (!drive(worker, block)) {
        note_failure("barrier_divergence",
                     "A grid-wide sync() needs a cooperative launch. Launch the kernel with "
                     "cudaLaunchCooperativeKernel instead of <<<>>>.",
                     block.line[0], 0);
      }
      if (worker.abort_pending || job.cancelled.load(std::memory_order_relaxed)) {
        if (worker.fault.signal) explain(worker);
        reclaim(worker);
        break;
      }
      if (worker.counter) worker.counter->block_ends(block);
    }
    if (job.cancelled.load(std::memory_order_relaxed)) break;
  }
  if (worker.checker) worker.checker->end();
  if (worker.counter) worker.counter->end();
  worker.job = nullptr;
}

void run_cooperative(Worker& worker, Job& job) {
  prepare(worker, job);
  prepare_checks(worker, job);
  prepare_counts(worker, job);
  const auto blocks = static_cast<std::size_t>(job.blocks);
  std::vector<bool> done(blocks, false);
  bool first = true;
  for (std::size_t left = blocks; left > 0;) {
    std::size_t parked = 0;
    for (std::size_t i = 0; i < blocks && !job.cancelled; ++i) {
      if (done[i]) continue;
      Block& block = block_at(worker, i);
      if (worker.counter) worker.counter->block_resumes();
      if (first) {
        start_block(worker, block, job, scheduled(job, i));
      } else {
        restore(worker, block, job);
        if (worker.checker) worker.checker->block_resumes(scheduled(job, i));
        block.grid_arrived = 0;
        for (unsigned t = 0; t < block.count; ++t)
          if (block.wait[t] == Wait::grid) block.make_ready(t);
      }
      if (drive(worker, block)) {
        done[i] = true;
        if (worker.counter && !job.cancelled) worker.counter->block_ends(block);
        --left;
      } else {
        if (worker.counter) worker.counter->block_parks(block);
        save(worker, block, job);
        if (worker.checker) worker.checker->block_parks(scheduled(job, i));
        ++parked;
      }
    }
    first = false;
    if (worker.checker) worker.checker->blocks_met();
    if (job.cancelled) {
      if (worker.fault.signal) explain(worker);
      break;
    }
    if (parked > 0 && left < blocks) {
      note_failure("barrier_divergence",
                   std::to_string(parked) + " blocks wait at a grid-wide sync(), but the other " +
                       std::to_string(blocks - left) +
                       " blocks returned without reaching it. Every thread of the grid must reach it.",
                   job.launch->site.line, 0);
      break;
    }
  }
  reclaim(worker);
  if (worker.checker) worker.checker->end();
  if (worker.counter) worker.counter->end();
  worker.job = nullptr;
}

std::string coordinates(unsigned linear, const dim3& block) {
  return "(" + std::to_string(linear % block.x) + ", " + std::to_string(linear / block.x % block.y) + ", " +
         std::to_string(linear / (block.x * block.y)) + ")";
}

bool Block::gone(unsigned thread) const {
  const Worker& worker = *this_worker;
  const unsigned rank = worker.order.empty() ? thread : worker.ranks[thread];
  return rank < simt::cursor.next && wait[thread] == Wait::nothing && thread != simt::cursor.current;
}

std::vector<CodePlace> places_on_stack(unsigned thread) {
  constexpr std::size_t most = 16;
  std::vector<CodePlace> found;
  const Worker& worker = *this_worker;
  const Module* module = worker.job->module;
  if (!module || !worker.block || thread >= worker.block->count) return found;
  const bool runs = thread == cursor.current;
  const Fiber* fiber = runs ? worker.fiber : worker.block->fiber[thread];
  const void* low = runs ? __builtin_frame_address(0) : worker.block->stack[thread];
  if (!fiber || low < fiber->low || low >= fiber->top) return found;
  for (auto* at = static_cast<const std::uintptr_t*>(low);
       reinterpret_cast<const char*>(at) < fiber->top && found.size() < most; ++at)
    if (module->contains(*at)) found.push_back({module->path, *at - 1 - module->base});
  return found;
}

std::vector<CodePlace> places_of_calls() {
  std::vector<CodePlace> found;
  if (!this_worker->job->module) return found;
  const auto add = [](_Unwind_Context* frame, void* into) {
    constexpr std::size_t most = 16;
    auto& all = *static_cast<std::vector<CodePlace>*>(into);
    const Module& module = *this_worker->job->module;
    const std::uintptr_t code = _Unwind_GetIP(frame);
    if (module.contains(code)) all.push_back({module.path, code - 1 - module.base});
    return all.size() < most ? _URC_NO_REASON : _URC_END_OF_STACK;
  };
  _Unwind_Backtrace(add, &found);
  return found;
}

namespace {
// Returns a thread that is in the call of this line: the running one, or one that waits there.
unsigned thread_in_call(const Block& block, int line) {
  if (cursor.current < block.count) return cursor.current;
  for (unsigned t = 0; t < block.count; ++t)
    if (block.wait[t] != Wait::nothing && block.wait[t] != Wait::ready && block.line[t] == line) return t;
  return no_thread;
}
}  // namespace

void note_failure(const char* reason, std::string message, int line, unsigned thread) {
  Worker& worker = *this_worker;
  const Launch& launch = *worker.job->launch;
  const dim3& shape = launch.config.block;
  Fault fault;
  fault.reason = reason;
  fault.message = std::move(message);
  fault.kernel = launch.site.kernel;
  fault.file = launch.site.file;
  fault.line = line;
  fault.in_thread = true;
  fault.block = blockIdx;
  fault.thread = {thread % shape.x, thread / shape.x % shape.y, thread / (shape.x * shape.y)};
  if (worker.block) fault.code = places_on_stack(thread_in_call(*worker.block, line));  // they tell the line's file
  record(std::move(fault));
  worker.job->cancelled = true;
}

void fail(const char* reason, std::string message, int line, unsigned thread) {
  Worker& worker = *this_worker;
  worker.critical = true;          // never unset: this stack is abandoned with the string on it
  note_failure(reason, std::move(message), line, thread);
  leave_kernel(worker);
}

Critical::~Critical() {
  worker_.critical = false;
  if (worker_.abort_pending) leave_kernel(worker_);
}

}  // namespace simt
