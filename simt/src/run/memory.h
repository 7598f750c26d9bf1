// Allocates device memory of the simulated GPU: poisoned when new and, on request, fenced by inaccessible pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <simt/runtime.h>

namespace simt {

enum class Guard : int { none, end, front };

void set_guard(Guard guard);
void begin_command();      // of a monitor: leaks are counted from here on

// The position of an address relative to the nearest allocation.
struct Place {
  bool found = false;
  bool freed = false;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
Place place_of(std::uintptr_t address);
Place live_place_of(std::uintptr_t address);      // considers live allocations only

// The live allocations and the registered memory of the host.
struct Extent {
  std::uintptr_t base;
  std::size_t bytes;
};
std::vector<Extent> extents();

// Calls look(base, bytes) for every live allocation that is no input; none is freed meanwhile.
void visit_live(const std::function<void(std::uintptr_t, std::size_t)>& look);

// Inputs lie in a monitor's memory. A process can read them, and the first write to one is reported; what is written
// stays in this process. descriptor: of the monitor's memory, opened to be read alone.
void set_inputs(int descriptor);
SIMT_API void* map_input(std::uint64_t offset, std::size_t bytes);  // null if that fails
bool in_input(std::uintptr_t address);

// Lets the process go on that has faulted at an address of an input's pages, each of which it can read.
struct InputFault {
  bool found = false;
  bool inside = false;       // of the input itself; else in the rest of its pages, which is opened on request alone
  bool first = false;        // the first write to this input
  std::uint64_t offset = 0;  // of the input in the monitor's memory
};
InputFault open_input(std::uintptr_t address, bool open_rest);

// Opens the page of a fence that contains `address`, so that a kernel that accesses it keeps running. Returns false if
// no fence contains it or too many pages are open. close_fences() closes all.
bool open_fence(std::uintptr_t address);

// Returns whether an address lies in memory that this file has handed out, or in its fences.
bool is_allocated(std::uintptr_t address);
void close_fences();

// Memory from cudaMalloc and similar functions that was allocated after `since` (from now()) and not freed.
struct Leak {
  std::size_t bytes;
  std::uintptr_t code;     // where it was allocated
};
std::uint64_t now();
std::vector<Leak> leaks(std::uint64_t since);
void release_all();  // when the program has ended
SIMT_API void* allocate_at(std::size_t bytes, const void* code);  // code: null if no program frees it

// Which bytes of memory that is closed to the host were written, by copies and by the launches that have ended, in pieces
// of at least 1 << shift bytes. Other memory has no record.
inline constexpr std::uint8_t word_shift = 2;
void note_written(std::uintptr_t base, std::size_t bytes, std::uint8_t shift = word_shift);
bool is_noted(std::uintptr_t address);
std::uint8_t smallest_piece(std::uintptr_t address);  // the least shift so far
// Counts the padding of records as written. first: one of them; padding: which of its bytes are none of its fields.
void note_padding(std::uintptr_t first, std::size_t bytes, const bool* padding);

std::size_t allocated_bytes();  // by cudaMalloc and its kin, and not freed

// In a checked program the host cannot access memory from cudaMalloc, as on a GPU: only kernels and copies can.
bool closed_to_host(std::uintptr_t address);
// Whether free() reads this address, its notes on a block, where it gets such memory.
bool is_read_by_free(std::uintptr_t address);
void allow_access_to_all(bool reach);
struct KernelAccess {
  KernelAccess() { allow_access_to_all(true); }
  ~KernelAccess() { allow_access_to_all(false); }
  KernelAccess(const KernelAccess&) = delete;
};

// First live allocation whose slack (the bytes between its end and its fence) was written; base 0 if none.
Place damaged();

}  // namespace simt
