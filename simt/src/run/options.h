// Declares the options of launches, and the results that Python takes from the runtime.
#pragma once

#include <simt/host.h>

#include <string>
#include <vector>

#include "run/fault.h"

namespace simt {

enum class Mode { plain, check, count };

struct Options {
  Mode mode = Mode::plain;
  int schedule = 0;               // 0 forward, 1 reverse, 2 by seed
  unsigned long long seed = 0;
  double seconds = 30;            // for one launch
  int threads = 1;                // operating-system threads
  bool idle = false;              // launches are examined and noted, and no thread of theirs runs
  bool program = false;           // a program with its own main runs (program.cpp)
  bool crashed = false;           // the program has, and its memory is not freed: the heap may be locked for ever
  bool sorted_print = false;  // kernels' output is sorted, so that it does not depend on the order of threads
  bool (*interrupted)() = nullptr;  // returns whether the user has pressed Ctrl-C
};

SIMT_API const Options& options();

// Lets its owner change the options. They are read-only otherwise where a monitor is obeyed, as its orders are.
class SIMT_API ChangedOptions {
 public:
  ChangedOptions();
  ~ChangedOptions();
  ChangedOptions(const ChangedOptions&) = delete;
  Options* operator->() const;
};
void set_device(const Device& device);

// Called after a call of an extension. Returns whether there is a fault to raise. `threw`: the call threw an exception.
SIMT_API bool finish_call(Fault& fault, bool threw);
SIMT_API std::string take_printed();

// A launch. The newest 16 since the last call are kept, oldest first.
struct Launched {
  std::string kernel;
  dim3 grid, block;
};
std::vector<Launched> take_launches();
bool flush_printed();  // of a program: to stdout; returns whether there was output

}  // namespace simt
