// Computes sectors, wavefronts and bank conflicts of one request.
#include "count/rules.h"

#include <algorithm>
#include <utility>

namespace simt {
namespace {

constexpr unsigned warp = 32, sector = 32, line = 128, banks = 32, bank_bytes = 4, line_banks = 4;

// The active lanes' addresses in ascending order; most requests come in that order already.
unsigned sorted(const Request& request, std::uint64_t* address) {
  unsigned n = 0;
  for (unsigned lane = 0; lane < warp; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    const std::uint64_t a = request.address[lane];
    unsigned at = n++;
    for (; at > 0 && address[at - 1] > a; --at) address[at] = address[at - 1];
    address[at] = a;
  }
  return n;
}

// Returns the passes that the lanes [from, from + count) need: one word of each bank per pass, or one lane per bank
// and pass if every lane changes its word by itself.
unsigned passes(const Request& request, unsigned from, unsigned count, bool alone) {
  std::uint64_t words[warp * 4];
  unsigned n = 0;
  for (unsigned lane = from; lane < from + count; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    const std::uint64_t first = request.address[lane] / bank_bytes,
                        last = (request.address[lane] + request.bytes - 1) / bank_bytes;
    for (std::uint64_t word = first; word <= last && n < warp * 4; ++word) words[n++] = word;
  }
  std::sort(words, words + n);
  if (!alone) n = static_cast<unsigned>(std::unique(words, words + n) - words);
  unsigned in_bank[banks] = {}, most = 0;
  for (unsigned i = 0; i < n; ++i) most = std::max(most, ++in_bank[words[i] % banks]);
  return most;
}

// Whether each active lane and the one next to it, or each and the one two further, access the same bytes.
bool alike(const Request& request, unsigned from, unsigned count) {
  for (unsigned apart : {1u, 2u}) {
    bool all = true;
    for (unsigned lane = from; lane < from + count && all; ++lane) {
      const unsigned other = lane ^ apart;
      if (request.lanes >> lane & 1)
        all = request.lanes >> other & 1 && request.address[lane] == request.address[other];
    }
    if (all) return true;
  }
  return false;
}

// Returns the pieces of memory that contain the bytes [from, to) and are not before `next`; sets `next` after them.
std::uint32_t touched(std::uint64_t from, std::uint64_t to, std::uint64_t piece, std::uint64_t& next) {
  const std::uint64_t first = std::max(from / piece, next), end = (to - 1) / piece + 1;
  if (end <= first) return 0;
  next = end;
  return static_cast<std::uint32_t>(end - first);
}

// Returns in which of the four banks of lines an address lies, relative to where its array begins: two parities. (Found
// with ncu on an H200, of atomic operations.)
unsigned line_bank(std::uint64_t address) {
  constexpr std::uint64_t parity[2] = {0x2f7bd5a80, 0x75d6aed00};
  return static_cast<unsigned>(__builtin_parityll(address & parity[0]) | __builtin_parityll(address & parity[1]) << 1);
}

}  // namespace

bool are_regular(const Span* spans, unsigned count) {
  const auto gap = [&](unsigned i) { return spans[i].from - spans[i - 1].from; };
  unsigned alike = 0;
  for (unsigned i = 2; i < count; ++i) alike += gap(i) == gap(i - 1) || (i > 2 && gap(i) == gap(i - 2));
  return count > 2 && 2 * alike > count - 2;
}

unsigned global_cost(const Request& request, Cost& cost, Span* spans) {
  std::uint64_t address[warp];
  const unsigned n = sorted(request, address);
  unsigned runs = 0, depth = 0;
  std::uint64_t next_sector = 0;
  for (unsigned i = 0; i < n; ++i) {
    const std::uint64_t from = address[i], to = from + request.bytes;
    const bool again = i > 0 && from == address[i - 1];
    depth = again ? depth + 1 : 1;
    cost.deepest = std::max(cost.deepest, depth);
    if (again) continue;
    ++cost.distinct;
    cost.sectors += touched(from, to, sector, next_sector);
    if (runs > 0 && from <= spans[runs - 1].to)
      spans[runs - 1].to = std::max(spans[runs - 1].to, to);
    else
      spans[runs++] = {from, to};
  }
  for (unsigned i = 0; i < runs; ++i) cost.used += static_cast<std::uint32_t>(spans[i].to - spans[i].from);
  cost.ideal_sectors = (cost.used + sector - 1) / sector;
  return runs;
}

// The L1 cache takes an atomic operation in passes. It has four banks of lines, and in a pass one line of each. Before
// the lines are chosen, each place in a bank, of an operand's size, goes to the lowest lane that is left there, whichever
// line it means; then each bank's line goes to the lowest lane that holds a place. So lanes that lost their place to
// another line come back, and their sectors count again. (Found with ncu on an H200: wavefronts and sectors of 1,246
// single requests, and of 348 more of other types and far addresses, are these in all but those of atomicCAS, which takes
// up to two passes more.)
void atomic_cost(const Request& request, std::uint64_t origin, Cost& cost) {
  constexpr unsigned places = line / 4;
  const unsigned operand = std::max(request.bytes, 4u);
  cost.sectors = 0;
  for (std::uint32_t left = request.lanes; left;) {
    std::uint32_t served = 0;
    std::uint32_t taken[line_banks] = {};
    bool chosen[line_banks] = {};
    std::uint64_t serves[line_banks] = {};
    for (std::uint32_t lanes = left; lanes; lanes &= lanes - 1) {
      const int lane = __builtin_ctz(lanes);
      const std::uint64_t address = request.address[lane] - origin;
      const unsigned bank = line_bank(address);
      const std::uint32_t place = 1u << address % line / operand % places;
      if (taken[bank] & place) continue;
      taken[bank] |= place;
      if (!std::exchange(chosen[bank], true)) serves[bank] = address / line;
      if (serves[bank] == address / line) served |= 1u << lane;
    }
    std::uint64_t sectors[warp];
    unsigned n = 0;
    for (std::uint32_t lanes = served; lanes; lanes &= lanes - 1)
      sectors[n++] = (request.address[__builtin_ctz(lanes)] - origin) / sector;
    std::sort(sectors, sectors + n);
    cost.sectors += static_cast<std::uint32_t>(std::unique(sectors, sectors + n) - sectors);
    left &= ~served;
  }
}

void shared_cost(const Request& request, Cost& cost, bool alone) {
  // A pass serves 32 lanes of up to 4 bytes, 16 of 8, 8 of 16; twice as many where neighbours access the same bytes
  // (measured with ncu on an H200: benchmarks/micro/shared_wide_sharing.cu, atomic_patterns.cu).
  const unsigned lanes = request.bytes <= 4 ? 32 : request.bytes <= 8 ? 16 : 8, most = std::min(32u, 2 * lanes);
  unsigned needed = 0;      // bytes
  for (unsigned from = 0; from < warp; from += most) {
    const bool shared = lanes != most && !alone && alike(request, from, most);
    const unsigned group = shared ? most : lanes;
    for (unsigned first = from; first < from + most; first += group) {
      const std::uint32_t inside = request.lanes & (group == 32 ? ~0u : ((1u << group) - 1) << first);
      if (!inside) continue;
      cost.wavefronts += passes(request, first, group, alone);
      needed += static_cast<unsigned>(__builtin_popcount(inside)) * request.bytes / (shared ? 2 : 1);
    }
  }
  // As ncu has it: what the lanes' bytes take at 128 a pass, wherever they are.
  cost.ideal_wavefronts += std::min(cost.wavefronts, (needed + banks * bank_bytes - 1) / (banks * bank_bytes));
}

// The lines are looked up in passes, which take the lanes in order and end before a line whose bank has had another. Data
// pass through the banks of shared memory. (ncu on an H200: benchmarks/micro/strides.cu, gather.cu, rows.cu, widths.cu.)
bool l1_cost(const Request& request, std::uint64_t origin, Cost& cost) {
  std::uint64_t held[line_banks] = {};
  bool taken[line_banks] = {};
  std::uint32_t lookups = 1;
  std::uint64_t first = ~std::uint64_t(0), last = 0;
  for (std::uint32_t lanes = request.lanes; lanes; lanes &= lanes - 1) {
    const std::uint64_t address = request.address[__builtin_ctz(lanes)] - origin;
    const unsigned bank = line_bank(address);
    first = std::min(first, address / line);
    last = std::max(last, address / line);
    if (taken[bank] && held[bank] != address / line) {
      ++lookups;
      std::fill(taken, taken + line_banks, false);
    }
    taken[bank] = true;
    held[bank] = address / line;
  }
  shared_cost(request, cost, false);
  const bool rare = lookups > cost.wavefronts && last == first + 1;
  cost.wavefronts = std::max(cost.wavefronts, lookups);
  return rare;
}

}  // namespace simt
