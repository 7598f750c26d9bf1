// Declares the state of one operating-system thread that runs blocks, and of its blocks.
#pragma once

#include <simt/runtime.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "run/fault.h"
#include "run/fiber.h"
#include "run/module.h"
#include "run/observer.h"

namespace simt {

inline constexpr unsigned max_threads = 1024;
inline constexpr unsigned max_warps = max_threads / 32;
inline constexpr unsigned no_thread = ~0u;   // cursor.current while no thread runs

struct Fiber {
  void* start = nullptr;    // a saved stack pointer at which threads begin
  char* top = nullptr;      // highest address of the stack, less its offset
  char* low = nullptr;      // lowest usable address
};

enum class Wait : std::uint8_t {
  nothing,
  ready,
  barrier,
  exchange,
  active_mask,
  grid,
  place,
  full
};   // full: of events to count

// Lanes of one warp that meet in one exchange.
struct Meeting {
  std::uint64_t value[32];
  unsigned mask, arrived;
  const char* what;
  int line;
  unsigned readers;         // lanes that still hold the result
};

// One call of a warp's, by its line, in a checked launch: how often each lane has made it, and its newest mask.
struct WarpCall {
  const char* what;
  int line;
  unsigned times[32], mask[32];
};

// One thread's asynchronous copies that no thread has waited for yet.
struct Copies {
  struct Copy {
    void* target;
    CopyBits bits;
    unsigned bytes, batch;
  };
  std::vector<Copy> waiting;              // oldest first, from `first` on
  std::size_t first = 0;
  unsigned committed = 0;                 // batches ended
};

// Returns whether all pending copies to this piece of the running block's shared memory bring the same bytes.
bool copies_bring(const char* piece, std::size_t bytes, const char* these);

// A copy that threads of a block make together: it arrives when the barrier at `place` completes.
struct PlacedCopy {
  const volatile void* place;
  void* target;
  CopyBits bits;
  std::size_t bytes;
};

// A block: the states of its threads and everything that they wait for.
struct Block {
  dim3 index;
  unsigned count;                         // threads
  Wait wait[max_threads];
  int line[max_threads];                  // of the call in which the thread waits
  Fiber* fiber[max_threads];              // of a waiting or ready thread
  void* stack[max_threads];               // its saved stack pointer
  Meeting* holds[max_threads];            // the exchange whose result the thread may still read
  unsigned answer[max_threads];           // of active_mask

  std::uint16_t ready[max_threads];       // ring of threads that may run
  unsigned ready_from, ready_count;

  unsigned barrier_arrived, grid_arrived;
  int barrier_line;
  bool barrier_mixed;                     // threads arrived from different lines
  unsigned votes;                         // true predicates at the pending barrier
  int vote_result;                        // of the last finished one

  const volatile void* place[max_threads];  // the address that the thread waits for
  const char* place_name[max_threads];
  std::vector<Copies> copies;             // by thread; empty until one of them copies asynchronously
  std::vector<PlacedCopy> placed_copies;
  std::size_t placed_from = 0;            // those before have arrived
  CopyBits copied;                        // by the copy that arrived last

  std::vector<Meeting*> meetings[max_warps];
  std::vector<WarpCall> calls[max_warps];
  std::vector<std::unique_ptr<Meeting>> all_meetings;
  std::vector<Meeting*> free_meetings;

  Cursor cursor;                          // saved while another block of the worker runs
  std::vector<char> shared;               // likewise (cooperative launches only)

  void reset(dim3 where, unsigned threads);
  bool gone(unsigned thread) const;       // has returned
  void make_ready(unsigned thread) {
    wait[thread] = Wait::ready;
    ready[(ready_from + ready_count++) % max_threads] = static_cast<std::uint16_t>(thread);
  }
};

struct Job;
struct Counting;

struct Worker {
  void* main_stack = nullptr;             // where the scheduler waits while a fiber runs
  Fiber* fiber = nullptr;                 // running
  Block* block = nullptr;
  Job* job = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Fiber*> idle;
  std::vector<std::unique_ptr<Block>> blocks;
  char* dynamic_shared = nullptr;         // end of the dynamic shared memory's room: a fence follows
  char* dynamic_base = nullptr;           // what this launch's kernels see
  std::vector<uint3> places;              // threadIdx of each thread of the block
  std::vector<unsigned> order;            // starting order of threads, empty for the natural one
  std::vector<unsigned> ranks;            // its inverse, likewise
  std::vector<std::uint16_t> turns;       // the same for every order, as the ready ring holds it
  volatile bool in_kernel = false;        // a fault now is the kernel's
  volatile bool critical = false;         // an abort must wait until the lock is free
  volatile bool abort_pending = false;
  int spared = 0;                         // aborts of this launch that came while a library's code ran
  RawFault fault;                         // filled by a signal handler
  char* stacks = nullptr;                 // address space that the first fibers' stacks lie in, one after the other
  std::size_t stacks_bytes = 0;
  CheckObserver* checker = nullptr;       // of a checked launch, else null
  std::shared_ptr<CheckObserver> own_checker;   // kept from launch to launch
  CountObserver* counter = nullptr;       // of a counted launch, else null
  std::map<const Module*, std::shared_ptr<CountObserver>> own_counters;   // likewise
};

extern __thread __attribute__((tls_model("initial-exec"))) Worker* this_worker;

// Delays an abort while it exists, because a lock (such as malloc's) may be held.
class Critical {
 public:
  explicit Critical(Worker& worker) : worker_(worker) { worker_.critical = true; }
  ~Critical();

 private:
  Worker& worker_;
};

// A launch in progress.
struct Job {
  const Launch* launch;
  const Module* module;
  std::vector<SharedArray> arrays;        // static shared arrays that its blocks may use
  std::uint64_t blocks;
  std::uint64_t chunk;
  bool several = false;                   // workers run it
  std::atomic<std::uint64_t> next{0};
  std::atomic<bool> cancelled{false};     // a fault, the time limit, or Ctrl-C
  std::atomic<bool> timed_out{false};
  std::uint64_t seed = 0;
  int schedule = 0;                       // 0 forward, 1 reverse, 2 by seed
  Counting* counting = nullptr;           // in a counted launch
};

// worker.cpp
void run_blocks(Worker& worker, Job& job);
void run_cooperative(Worker& worker, Job& job);
[[noreturn]] void leave_kernel(Worker& worker);                 // back to the scheduler; the block is abandoned
void note_failure(const char* reason, std::string message, int line, unsigned thread);   // and cancels the launch
[[noreturn]] void fail(const char* reason, std::string message, int line, unsigned thread);   // from a fiber
// Returns the places in the kernel's code to which a thread will return, the innermost first; the running thread, or one
// that waits. Words that only look like such addresses are among them.
std::vector<CodePlace> places_on_stack(unsigned thread);
// Returns the same for the running thread, by unwinding: exact, but slow.
std::vector<CodePlace> places_of_calls();
std::string coordinates(unsigned linear, const dim3& block);

// collectives.cpp
bool resolve_active_masks(Block& block);
void report_deadlock(Block& block);

}  // namespace simt
