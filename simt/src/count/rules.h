// Declares what one request of a warp costs, by the rules that Nsight Compute documents.
#pragma once

#include <cstdint>

namespace simt {

// A warp-level instruction: the addresses of its active lanes.
struct Request {
  const std::uint64_t* address;      // of each lane; meaningful where `lanes` has a bit
  std::uint32_t lanes;
  unsigned bytes;                    // that each lane accesses
};

struct Cost {
  std::uint32_t used;                // different bytes that the lanes access together
  std::uint32_t sectors;             // 32-byte pieces of memory that hold them
  std::uint32_t ideal_sectors;       // the fewest that could hold as many bytes
  std::uint32_t wavefronts;          // passes through the 32 banks of L1 and shared memory
  std::uint32_t ideal_wavefronts;    // passes without any conflict
  std::uint32_t distinct;            // different addresses
  std::uint32_t deepest;             // lanes at the most frequent address
};

// A run of bytes that a request touches.
struct Span {
  std::uint64_t from, to;
};

// Whether most of at least three runs lie as far from the one before as one of the two before lies from its own.
bool are_regular(const Span* spans, unsigned count);
// Everything but the wavefronts. `spans` takes up to 32 runs, in ascending order; returns how many there are.
unsigned global_cost(const Request& request, Cost& cost, Span* spans);
// Instead of its sectors, those of an atomic operation on global memory. origin: where the array begins.
void atomic_cost(const Request& request, std::uint64_t origin, Cost& cost);
// Sets the wavefronts of a load or a store of global memory. origin: where the array begins. Returns whether a pass is
// for two neighbouring lines of one bank, which one pair in sixteen are: a shift of the addresses saves it.
bool l1_cost(const Request& request, std::uint64_t origin, Cost& cost);
// Adds the wavefronts of an access to shared memory. alone: lanes at the same word are served one after the other.
void shared_cost(const Request& request, Cost& cost, bool alone);

}  // namespace simt
