// How control flows in an extension's code: basic blocks, who follows whom, and where paths that part meet again.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "module.h"

namespace simt {

// Of one extension, shared by the workers. The list beside the extension (simt/disassembly.py writes it) knows the flow as
// far as the machine code tells; what a jump through a table does is learnt from the threads.
class Flow {
 public:
  explicit Flow(const Module& module);

  int function_at(std::uint64_t offset) const;   // of code at an offset in the module; -1: in none that is known

  // A block is known by the offset of its probe's return address, which may be its first access's.
  bool begins(std::uint64_t offset) const { return by_offset_.count(offset) > 0; }
  int block_at(std::uint64_t offset);            // made where there is none
  bool enters(int block) const { return blocks_[static_cast<std::size_t>(block)].entry; }
  bool follows(int from, int to) const;
  void add(int from, int to);                    // an edge that a thread took
  int meeting_point(int block);                  // the block in which all paths from this one meet first; -1: at the function's end
  bool branches(int block) const { return blocks_[static_cast<std::size_t>(block)].next.size() > 1; }
  bool any_open() const { return open_ > 0; }
  bool open(int block) const { return blocks_[static_cast<std::size_t>(block)].open; }
  double instructions(int block) const { return blocks_[static_cast<std::size_t>(block)].instructions; }
  double flops(int block) const { return blocks_[static_cast<std::size_t>(block)].flops; }

  std::mutex mutex;                              // held around every call that may write: block_at, add, meeting_point

 private:
  struct Function { std::uint64_t low, high; int id; };
  struct Block {
    int function = -1;
    bool entry = false, open = true;             // open: not all that follow are known
    std::vector<int> next;                       // -1: the function's end
    double instructions = 0, flops = 0;
    int meeting = -1;
  };
  void solve(int function);

  std::vector<Function> functions_;              // by address
  std::vector<Block> blocks_;
  std::map<std::uint64_t, int> by_offset_;
  std::atomic<int> open_{0};                     // how many blocks are open
  std::map<int, bool> solved_;                   // by function
};

}  // namespace simt
