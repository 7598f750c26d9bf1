// Device memory of the played GPU: marked when new and, on request, fenced by inaccessible pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <simt/runtime.h>

namespace simt {

enum class Guard : int { none, end, front };

void set_guard(Guard guard);

// Where an address lies relative to the allocation nearest to it.
struct Place {
  bool found = false;
  bool freed = false;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
Place place_of(std::uintptr_t address);
Place live_place_of(std::uintptr_t address);      // of what is allocated now only

// What is allocated now, by address.
struct Extent {
  std::uintptr_t base;
  std::size_t bytes;
};
std::vector<Extent> extents();

// Makes the page of a fence that `address` lies in accessible, so that a kernel that strays there goes on; false if it
// lies in none, or too many are open. close_fences() shuts them all.
bool open_fence(std::uintptr_t address);
void close_fences();

// Memory of cudaMalloc and its kin that was allocated after `since` (of now()) and not freed.
struct Leak {
  std::size_t bytes;
  std::uintptr_t code;     // where it was asked for
};
std::uint64_t now();
std::vector<Leak> leaks(std::uint64_t since);
SIMT_API void* allocate_at(std::size_t bytes, const void* code);    // code: null for memory that is no kernel's to free

// In a checked program the host may not touch what cudaMalloc gave it, as with a GPU: only kernels and copies do.
bool closed_to_host(std::uintptr_t address);
void let_reach_all(bool reach);
struct KernelsReach {
  KernelsReach() { let_reach_all(true); }
  ~KernelsReach() { let_reach_all(false); }
  KernelsReach(const KernelsReach&) = delete;
};

// First live allocation whose slack (the bytes between its end and its fence) was written; base 0 if none.
Place damaged();

}  // namespace simt
