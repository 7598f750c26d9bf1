// Declares the checks of a checked build: which memory an access touches, which thread accessed it before, and whether
// the two conflict.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "run/memory.h"
#include "check/probe.h"
#include "run/worker.h"

namespace simt {

// A defect at one place, with the number of times that it was seen. simt/checking/findings.py writes the message.
struct Finding {
  std::string check;  // a name of simt.Finding.check
  std::string what;  // "read", "write", "atomic", or the operation that overflowed
  std::string space;  // "global", "shared", "local", "heap", "texture"
  std::string array;  // the kernel's parameter or the variable; empty if neither is known
  std::string type;  // of an array whose index is out of range, as the compiler writes it
  std::int64_t index = 0;  // in elements
  std::uint64_t elements = 0;  // of the array
  std::uint64_t element = 1;  // bytes
  std::string kernel, file;
  int line = 0;  // 0: find it from `code`
  // The line if no place has one: of the call of a library function, whose own code is not the program's, or of the
  // definition of a kernel that failed.
  int launched = 0;
  // Of an index that is out of range: in the text that was compiled; of a misaligned address: bytes past a multiple.
  int column = 0;
  std::uintptr_t code = 0;
  std::vector<CodePlace> places;  // instead of `code`, if a fault has recorded them, or after it
  bool in_thread = false;
  uint3 block{}, thread{};
  bool has_other = false;  // the other access of a race
  std::string other_what;
  uint3 other_block{}, other_thread{};
  std::uintptr_t other_code = 0;
  int barrier_line = 0;  // of a race between two accesses after the same barrier: its line; 0: none
  bool warning = false;
  std::string message;  // if the runtime has written it
  std::uint64_t count = 1;
  std::uint64_t first = 0;  // when it was seen first, as a number; 0: now
};

// Returns how many bytes are left from there to the end of what malloc or new gave to host code; the largest number where
// that is not known.
std::size_t left_on_heap(const void* address);

void add_finding(Finding finding);
// Keeps a finding until the launch has ended: release_findings() adds all but those of these sites.
void hold_finding(Finding finding, unsigned site);
void release_findings(const std::unordered_set<unsigned>& sites);
std::uint64_t next_moment();  // for Finding::first
std::vector<Finding> take_findings();
std::vector<Finding> list_reported();  // since a monitor's newest orders

// A place where atomic operations were executed. They often cause results that depend on the order of threads without
// a race.
struct AtomicSite {
  unsigned kind;  // a simt::Atomic
  std::string kernel;
};
std::map<std::uintptr_t, AtomicSite> take_atomics();  // by return address

// Orders accesses of different threads without a barrier: an atomic write to global memory after a fence publishes the
// earlier accesses of its thread (and, through barriers, of its block); an atomic read of the same word acquires them.
class Handovers {
 public:
  struct Moment {
    std::uint64_t block;
    unsigned thread;
    std::uint64_t phase;
    unsigned epoch;
    std::uintptr_t word = 0;  // the variable of an atomic operation, where the access is one
  };
  void clear();
  void fence(const Moment& now);
  void atomic(std::uintptr_t address, const Moment& now, bool reads, bool writes);
  bool ordered(const Moment& before, const Moment& after, int depth = 0) const;

 private:
  // The block's phases < all_before, and the thread's own.
  struct Given {
    Moment by;
    std::uint64_t all_before;
    bool own;
  };
  struct Variable {
    std::vector<Given> given;
    std::unordered_multimap<std::uint64_t, std::size_t> of_block;
  };
  struct Taken {
    Moment when;
    const Variable* from;
    std::size_t count;
  };
  std::map<std::uintptr_t, Variable> variables_;
  std::unordered_map<std::uint64_t, std::vector<Taken>> taken_;  // by block
  std::unordered_map<std::uint64_t, std::uint64_t> fenced_;  // block -> phase of its newest fence, plus 1
  // (block, thread) -> phase of its newest fence, plus 1
  std::map<std::pair<std::uint64_t, unsigned>, std::uint64_t> own_;
};

// The same within a block since its last barrier, through words of shared memory. A thread also publishes the accesses
// that it has acquired: one vector of epochs per thread.
class BlockHandovers {
 public:
  void clear();
  void fence(unsigned thread) {
    if (!fenced_[thread]) fenced_[thread] = true, fences_.push_back(thread);
  }
  bool has_fenced(unsigned thread) const { return fenced_[thread]; }
  // An atomic operation. epoch: the thread's. synced: how many epochs of the lanes of its warp it has synchronised
  // with.
  void atomic(std::uintptr_t address, unsigned thread, unsigned epoch, const std::uint16_t* synced, bool reads,
              bool writes);
  void warp_synced(unsigned warp, unsigned lanes);
  bool ordered(unsigned before, unsigned epoch, unsigned after) const {
    return before < known_[after].size() && epoch < known_[after][before];
  }

 private:
  using Epochs = std::vector<std::uint16_t>;  // by thread: how many of its epochs
  static void join(Epochs& into, const Epochs& from);
  Epochs& known(unsigned thread);
  std::unordered_map<std::uintptr_t, Epochs> given_;  // by address
  std::vector<Epochs> known_ = std::vector<Epochs>(max_threads);
  std::vector<bool> fenced_ = std::vector<bool>(max_threads);
  std::vector<unsigned> knowing_, fences_;  // threads whose state clear() must reset
};

// A range of memory that the launch's kernel may use.
struct Region {
  std::uintptr_t base;
  std::size_t bytes;
  Slot::Kind kind;
  int array = -1;  // of job.arrays; -2: dynamic shared memory; -3: memory that a kernel has allocated
  int variable = -1;  // of the module's
};

// State that all workers of a launch share.
struct CheckedLaunch {
  std::vector<Region> regions;  // global ones, by address
  std::uintptr_t host_low = 0, host_bytes = 0;  // the launching thread's stack, where the arguments lie
  Handovers handovers;
  std::uint64_t began = 0;  // a moment
};

// The accesses before the atomic operation that Cell::write records, if its key has key::many. An atomic operation orders
// nothing, so accesses of other threads may race with these as well.
struct Earlier {
  std::uint64_t plain;  // the last write that was no atomic operation
  std::uint64_t atomic;  // another thread's atomic operation since then
};

// The checks of one worker.
class Checker final : public CheckObserver {
 public:
  explicit Checker(Worker& worker);
  void begin(Job& job) override;
  void end() override;
  void block_starts(std::uint64_t block) override;
  void block_parks(std::uint64_t block) override;
  void block_resumes(std::uint64_t block) override;
  void blocks_met() override;
  void barrier(int line) override;
  void warp_synced(unsigned warp, unsigned lanes) override;
  void lanes_missing(const Meeting& meeting, unsigned warp, const WarpCall& call) override;
  void copy_begins(std::uintptr_t target, std::size_t bytes, CopyBits bits, const void* code) override;
  void copy_arrives(std::uintptr_t target, std::size_t bytes) override;
  void name_dynamic_shared(const char* name, std::size_t element) override { dynamic_ = {name, element}; }

  void access(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code);
  void fence();
  void handed_over();
  void settle();
  void take_place(std::uintptr_t address);
  void leave_place();
  void settle_taken();
  void declared(std::uintptr_t variable, std::size_t bytes, const char* name);
  void locate(Finding& finding, const void* code) const;  // the running thread, at an address in the kernel's code
  void locate(Finding& finding, const void* code, unsigned thread) const;
  // For code that may be a header's: also what has called it.
  void locate_caller(Finding& finding, const void* code);

  struct Shadow {
    Cell* cells = nullptr;
    Earlier* earlier = nullptr;  // one per cell, from the first atomic operation that needs it
    std::uint8_t shift = 2;
    bool wrote = false, full = false;
  };
  struct BlockStart {
    std::uint64_t clock, block;
  };
  const Shadow& shadow(std::size_t region) const { return shadows_[region]; }
  void list_written(std::vector<Extent>& into) const;  // global memory, in any order
  Handovers::Moment moment(std::uint64_t key) const;
  void describe_other(Finding& finding, std::uint64_t key) const;
  void name(Finding& finding, const Region& region, std::uintptr_t address, std::size_t bytes) const;
  void clear_cells();
  const Launch& launch() const { return *job_->launch; }
  // The places of plain reads that an atomicCAS of the same thread and address followed directly.
  const std::unordered_set<unsigned>& compared() const { return compared_; }

 private:
  struct LocalVariable {
    std::uintptr_t base = 0;
    std::size_t bytes = 0;
    const char* name = "";
  };
  struct DynamicArray {
    const char* name = "";
    std::size_t element = 0;
  };
  struct PendingRace {
    Finding finding;
    std::vector<std::uint32_t> before;
    const void* at;
    std::uint8_t shift;
  };
  const Region& region(std::size_t index) const;
  const Region* region_of(std::uintptr_t address, std::size_t& index);
  void* take(std::size_t bytes);
  void refine(std::size_t index, std::uint8_t shift);
  Shadow& fine_enough(std::size_t index, std::uintptr_t address, std::size_t bytes);
  std::uint64_t key_now(const void* code) const;
  void forget_slots();
  void remember(std::uintptr_t site, const Slot& slot);
  bool in_heap(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code);
  void outside(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code);
  void stop_before_damage(const Region* nearest, const Finding& finding, std::uintptr_t address, std::size_t bytes);
  bool refused(const Region& region, std::uintptr_t address, std::size_t bytes, unsigned access, const void* code);
  void misaligned(const Region& region, std::uintptr_t address, std::size_t bytes, unsigned access, const void* code);
  void unwritten(const Region& region, const Shadow* shadow, std::uintptr_t address, std::size_t bytes, unsigned access,
                 const void* code);
  bool is_padding(const Region& region, std::uintptr_t address, std::size_t bytes) const;
  // Looks for races of an access, then notes it in the cells [from, to] that it touches.
  void look(std::size_t index, std::uintptr_t address, std::size_t bytes, unsigned access, const void* code);
  void note_atomic_write(std::size_t index, std::size_t at, bool shared, std::uint64_t mine);
  void note_in_cells(std::size_t index, std::size_t from, std::size_t to, unsigned access, bool shared,
                     std::uint64_t mine);
  bool races(std::uint64_t other, bool shared, bool second = false, std::uintptr_t address = 0) const;
  std::uint64_t racing_write(const Shadow& shadow, std::size_t at, bool shared, bool relaxed,
                             std::uintptr_t address) const;
  std::uint64_t racing_reader(const Cell& cell, bool shared, bool atomic) const;
  bool under_way(const Cell& cell) const {
    return key::clock(cell.elsewhere) >= key::clock(state_.began) && cell.elsewhere;
  }
  LocalVariable name_local(Finding& finding, std::uintptr_t address) const;
  void release_held(std::uintptr_t address, bool confirmed);
  void report_held();
  Handovers::Moment now() const;
  bool ignorable(std::uintptr_t address, unsigned access) const;
  void advance();
  void note_global_writes() const;  // before cells are cleared: other launches ask which bytes were written
  bool is_written(const Region& region, const Shadow* shadow, std::uintptr_t address) const;
  bool is_partly_written(const Region& region, const Shadow* shadow, std::uintptr_t address) const;
  bool is_typed(const Region& region, std::size_t bytes) const;
  void keep_written();  // before cells are cleared, for a monitor that asks who wrote what
  void restore_shared(const std::vector<Cell>& from);

  Worker& worker_;
  ProbeState& state_;
  Job* job_ = nullptr;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> touched_;
  std::vector<Region> shared_;  // this worker's shared arrays
  std::vector<Shadow> shadows_;  // of the launch's regions, then of shared_
  std::vector<BlockStart> starts_;
  std::vector<std::uint16_t> epoch_;
  std::vector<std::uint16_t> seen_;  // [warp][lane][other lane]: how many of its epochs the lane has synchronised with
  std::uint32_t warps_synced_ = 0;
  BlockHandovers handed_;
  std::vector<Extent> written_before_;  // what the cleared cells say was written
  char* arena_ = nullptr;  // of cells and of what came earlier
  std::size_t arena_bytes_ = 0, arena_used_ = 0;
  std::unique_ptr<PendingRace> pending_race_;
  // By thread and address: races of reads that an atomicCAS may still confirm as harmless, with the reads' sites.
  std::map<std::pair<unsigned, std::uintptr_t>, std::pair<Finding, unsigned>> held_;
  std::unordered_set<unsigned> compared_;
  LocalVariable locals_[64];  // the newest ones that were declared without a value
  unsigned next_local_ = 0;
  struct Taking {
    std::uintptr_t address = 0;
    Handovers::Moment when;
  } taking_;  // the newest atomic read, which was probed before it happened
  std::unordered_map<const void*, std::vector<CodePlace>> callers_;  // of code, when it had its first finding
  DynamicArray dynamic_;  // the running kernel's name for its dynamic shared memory
  std::uint64_t block_ = 0;
  int barrier_line_ = 0;  // of the running block's last barrier; 0: none yet, or not known
  std::unordered_map<std::uint64_t, std::vector<Cell>> parked_;  // cells of the shared memory of blocks that wait
};

SIMT_API void note_argument(const void* base, std::size_t bytes);  // a tensor that Python passed to a function
SIMT_API void forget_arguments();

}  // namespace simt
