// How launches run, and what Python asks of the runtime between them.
#pragma once

#include <simt/host.h>

#include <string>
#include <vector>

#include "fault.h"

namespace simt {

enum class Mode { plain, check, count };

struct Options {
  Mode mode = Mode::plain;
  int schedule = 0;               // 0 forward, 1 reverse, 2 by seed
  unsigned long long seed = 0;
  double seconds = 30;            // for one launch
  int threads = 1;                // operating-system threads
  bool program = false;           // a program with its own main runs (program.cpp)
  bool (*interrupted)() = nullptr;   // has the user pressed Ctrl-C?
};

SIMT_API Options& options();
void set_device(const Device& device);

// After a call of an extension: the fault to raise, if there is one. `threw`: the call ended by an exception.
SIMT_API bool finish_call(Fault& fault, bool threw);
SIMT_API std::string take_printed();

// A launch that was made. At most the newest 16 since they were last taken, oldest first.
struct Launched {
  std::string kernel;
  dim3 grid, block;
};
std::vector<Launched> take_launches();
bool flush_printed();                // of a program: to stdout; whether there was anything

}  // namespace simt
