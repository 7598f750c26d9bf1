// Declares the control flow of an extension's code: basic blocks, their successors, and where diverged paths meet
// again.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "run/module.h"

namespace simt {

// The control flow of one extension, shared by the workers. simt/toolchain/disassembly writes the list next to the
// extension: the flow that the machine code determines. The targets of a jump through a table are learnt from the
// threads.
class Flow {
 public:
  explicit Flow(const Module& module);

  int function_at(std::uint64_t offset) const;  // of code at an offset in the module; -1: in none that is known

  // The atomic operation that returns there adds 1.
  bool increments(std::uint64_t offset) const { return increments_.count(offset) > 0; }
  // A block is known by the offset of its probe's return address, which may be its first access's.
  bool begins(std::uint64_t offset) const { return by_offset_.count(offset) > 0; }
  int block_at(std::uint64_t offset);  // made where there is none
  bool enters(int block) const { return blocks_[static_cast<std::size_t>(block)].entry; }
  bool follows(int from, int to) const;
  void add(int from, int to);  // an edge that a thread took
  int meeting_point(int block);  // the block where lanes that part after this one meet; -1: there is none
  // Of the function of the last meeting_point():
  // The outermost loop that lanes leave which go from one block to the other, or -1.
  int left_loop(int from, int to) const;
  int meeting_after(int loop) const { return loops_[at(loop)].meeting; }  // where lanes wait that have left it
  bool inside(int block, int loop) const;
  // The block whose lanes all run through this one, or -1.
  int under(int block) const { return blocks_[at(block)].under; }
  bool branches(int block) const { return blocks_[static_cast<std::size_t>(block)].next.size() > 1; }
  bool any_open() const { return open_ > 0; }
  bool open(int block) const { return blocks_[static_cast<std::size_t>(block)].open; }
  double instructions(int block) const { return blocks_[static_cast<std::size_t>(block)].instructions; }
  double flops(int block) const { return blocks_[static_cast<std::size_t>(block)].flops; }

  std::mutex mutex;  // held around every call that may write: block_at, add, meeting_point

 private:
  struct Function {
    std::uint64_t low, high;
    int id;
  };
  struct Block {
    int function = -1;
    bool entry = false, open = true;  // open: not all that follow are known
    std::vector<int> next;  // -1: the function's end
    double instructions = 0, flops = 0;
    int under = -1;
    int meeting = -1, loop = -1;  // loop: the innermost one around it
  };
  struct Loop {
    int head, meeting, parent;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  void solve(int function);
  void solve_region(const std::vector<int>& members, int loop);
  bool does_nothing(int block) const;
  std::map<int, int> before_leaving(const std::vector<int>& members) const;

  std::vector<Function> functions_;  // by address
  std::set<std::uint64_t> increments_;
  std::vector<Block> blocks_;
  std::vector<Loop> loops_;
  std::map<std::uint64_t, int> by_offset_;
  std::atomic<int> open_{0};  // how many blocks are open
  std::map<int, bool> solved_;  // by function
};

}  // namespace simt
