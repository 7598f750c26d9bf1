// Device memory of the played GPU: marked when new and, on request, fenced by inaccessible pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <simt/runtime.h>

namespace simt {

enum class Guard : int { none, end, front };

SIMT_API void set_guard(Guard guard);

// Where an address lies relative to the allocation nearest to it.
struct Place {
  bool found = false;
  bool freed = false;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};
Place place_of(std::uintptr_t address);

// First live allocation whose slack (the bytes between its end and its fence) was written; base 0 if none.
Place damaged();

}  // namespace simt
