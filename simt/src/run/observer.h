// Declares the interfaces through which a launch reports events to the checks and the counters. run/ calls them, and
// check/ and count/ implement them, so that run/ includes neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "run/fault.h"
#include "run/memory.h"

namespace simt {

struct Block;
struct Job;
struct Meeting;
struct WarpCall;
struct Worker;

// Watches one worker in a checked launch. Blocks are numbered in the order of their linear index.
class CheckObserver {
 public:
  virtual ~CheckObserver() = default;
  virtual void begin(Job& job) = 0;
  virtual void end() = 0;  // the worker's last block has ended
  virtual void block_starts(std::uint64_t block) = 0;
  virtual void block_parks(
      std::uint64_t block) = 0;  // waits at a grid-wide barrier: another block uses the shared memory
  virtual void block_resumes(std::uint64_t block) = 0;
  virtual void blocks_met() = 0;  // all blocks have reached the grid-wide barrier
  virtual void barrier(int line) = 0;  // all threads of the running block have reached a barrier
  virtual void warp_synced(unsigned warp, unsigned lanes) = 0;
  // Lanes in the mask of `meeting` have returned. call: how often each lane made this call, and with which mask.
  virtual void lanes_missing(const Meeting& meeting, unsigned warp, const WarpCall& call) = 0;
  virtual void copy_begins(std::uintptr_t target, std::size_t bytes, CopyBits bits, const void* code) = 0;
  virtual void copy_arrives(std::uintptr_t target,
                            std::size_t bytes) = 0;  // a thread has waited for it: it is written now
  // The kernel's declaration of dynamic shared memory: the array's name and the size of its elements.
  virtual void name_dynamic_shared(const char* name, std::size_t element) = 0;
};

// Watches one worker in a counted launch.
class CountObserver {
 public:
  virtual ~CountObserver() = default;
  virtual void begin(Job& job) = 0;
  virtual void end() = 0;
  // Returns false if the block must not run. Blocks up to `to` follow.
  virtual bool block_starts(std::uint64_t position, std::uint64_t to) = 0;
  virtual void block_resumes() = 0;  // of a cooperative launch: starts, or leaves a grid-wide barrier
  virtual void block_parks(Block& block) = 0;  // waits at one
  virtual void block_ends(Block& block) = 0;
  virtual bool make_room(Block& block) = 0;  // nothing can run: resumes threads whose buffers were full
};

// Operations that threads perform together. The number is the address in the recorded event.
enum class Together : std::uint8_t { none, barrier, exchange, grid_barrier };

// Defined in check/.
std::shared_ptr<CheckObserver> make_checker(Worker& worker);
void begin_checked(Job& job);
void end_checked(const std::vector<CheckObserver*>& checkers);
// Returns the global memory that the launch's threads have written, in order; more than that where not all was noted.
// Call it before end_checked().
std::vector<Extent> list_written(const std::vector<CheckObserver*>& checkers);
void report_finding(const Fault& fault);

// Defined in count/.
std::shared_ptr<CountObserver> make_counter(Worker& worker);
void begin_counting(Job& job);
void end_counting(Job& job);
void record_together(Worker& worker, Together kind, const char* what, int line);

}  // namespace simt
