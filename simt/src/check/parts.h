// Declares functions and state that the parts of the checker share.
#pragma once

#include <mutex>

#include "check/checker.h"

namespace simt {

extern std::mutex check_mutex;      // guards all state that workers share
extern CheckedLaunch checked;       // one launch runs at a time
inline constexpr Slot empty_slot{std::uintptr_t(1) << 63, 16, nullptr, 0, Slot::unknown};

// Returns the checker of a worker in a checked launch, else null.
inline Checker* checker_of(const Worker* worker) { return worker ? static_cast<Checker*>(worker->checker) : nullptr; }
// A block of memory that a kernel has allocated: the one at an address or next to it.
struct HeapPlace {
  bool found = false, freed = false;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
HeapPlace heap_place(std::uintptr_t address);
uint3 thread_at(unsigned linear, const dim3& block);
const char* verb(unsigned access);
void free_places();  // that a worker held when its launch was stopped, for the next launch
void note_atomic(const void* code, unsigned kind, const char* kernel);

}  // namespace simt
