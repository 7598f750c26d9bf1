// Replaces the clocks that a program reads, so that two runs can show different times.
#include "process/clocks.h"

#include <simt/host.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

namespace simt {
namespace {

// Added to what the program's clocks show. Where simt/checking/schedules.py asks for it, each look at a clock adds up
// to 2 s, so that whatever the program prints of times differs from its other runs.
std::atomic<bool> clocks_vary{false};
std::atomic<long long> clock_offset_ns{0};

// What a look at a clock adds to it: 0, except where runs of a program are compared.
long long clock_jump() {
  static std::atomic<unsigned> looks{0};
  if (!clocks_vary) return 0;
  const unsigned mixed = (++looks + static_cast<unsigned>(getpid())) * 2654435761u;
  return clock_offset_ns += 1 + mixed % 2'000'000'000;
}

}  // namespace

void vary_clocks(bool vary) { clocks_vary = vary; }

}  // namespace simt

using namespace simt;

extern "C" {

// What clocks are in a program (simt/runtime/programs.py links it so).
SIMT_API int __wrap_clock_gettime(clockid_t clock, timespec* now) {
  const int failed = clock_gettime(clock, now);
  const long long offset = failed ? 0 : clock_jump(), ns = offset ? now->tv_nsec + offset : 0;
  if (offset) now->tv_sec += ns / 1'000'000'000, now->tv_nsec = ns % 1'000'000'000;
  return failed;
}
SIMT_API int __wrap_gettimeofday(timeval* now, void* zone) {
  const int failed = gettimeofday(now, zone);
  const long long us = failed ? 0 : now->tv_usec + clock_jump() / 1000;
  if (!failed) now->tv_sec += us / 1'000'000, now->tv_usec = us % 1'000'000;
  return failed;
}
SIMT_API time_t __wrap_time(time_t* into) {
  const time_t now = time(nullptr) + static_cast<time_t>(clock_jump() / 1'000'000'000);
  return into ? *into = now : now;
}
SIMT_API clock_t __wrap_clock() {
  return clock() + static_cast<clock_t>(clock_jump() / (1'000'000'000 / CLOCKS_PER_SEC));
}
SIMT_API std::chrono::steady_clock::time_point wrap_steady_clock() __asm__(
    "__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point wrap_steady_clock() {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(clock_jump());
}
SIMT_API std::chrono::system_clock::time_point wrap_system_clock() __asm__(
    "__wrap__ZNSt6chrono3_V212system_clock3nowEv");
std::chrono::system_clock::time_point wrap_system_clock() {
  return std::chrono::system_clock::now() + std::chrono::nanoseconds(clock_jump());
}

}  // extern "C"
