// Sectors, wavefronts and bank conflicts of one request.
#include "count_rules.h"

#include <algorithm>
#include <cstring>

namespace simt {
namespace {

constexpr unsigned warp = 32, sector = 32, line = 128, banks = 32, bank_bytes = 4;

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

// Passes that the lanes [from, from + count) need: of each bank one word a pass, or, where each lane changes its word by
// itself, what one lane wants.
unsigned passes(const Request& request, unsigned from, unsigned count, bool alone) {
  std::uint64_t words[warp * 4];
  unsigned n = 0;
  for (unsigned lane = from; lane < from + count; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    const std::uint64_t first = request.address[lane] / bank_bytes, last = (request.address[lane] + request.bytes - 1) / bank_bytes;
    for (std::uint64_t word = first; word <= last && n < warp * 4; ++word) words[n++] = word;
  }
  std::sort(words, words + n);
  if (!alone) n = static_cast<unsigned>(std::unique(words, words + n) - words);
  unsigned in_bank[banks] = {}, most = 0;
  for (unsigned i = 0; i < n; ++i) most = std::max(most, ++in_bank[words[i] % banks]);
  return most;
}

// Whether each active lane and the one next to it, or each and the one two further, ask for the same.
bool alike(const Request& request, unsigned from, unsigned count) {
  for (unsigned apart : {1u, 2u}) {
    bool all = true;
    for (unsigned lane = from; lane < from + count && all; ++lane) {
      const unsigned other = lane ^ apart;
      if (request.lanes >> lane & 1) all = request.lanes >> other & 1 && request.address[lane] == request.address[other];
    }
    if (all) return true;
  }
  return false;
}

// Pieces of memory that hold the bytes [from, to) and come no earlier than `next`, which becomes the one after them.
std::uint32_t touched(std::uint64_t from, std::uint64_t to, std::uint64_t piece, std::uint64_t& next) {
  const std::uint64_t first = std::max(from / piece, next), end = (to - 1) / piece + 1;
  if (end <= first) return 0;
  next = end;
  return static_cast<std::uint32_t>(end - first);
}

}  // namespace

std::uint32_t lines_of(const Span* spans, unsigned count, std::uint64_t shift) {
  std::uint32_t lines = 0;
  std::uint64_t next = 0;
  for (unsigned i = 0; i < count; ++i) lines += touched(spans[i].from + shift, spans[i].to + shift, line, next);
  return lines;
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
    if (runs > 0 && from <= spans[runs - 1].to) spans[runs - 1].to = std::max(spans[runs - 1].to, to);
    else spans[runs++] = {from, to};
  }
  for (unsigned i = 0; i < runs; ++i) cost.used += static_cast<std::uint32_t>(spans[i].to - spans[i].from);
  cost.ideal_sectors = (cost.used + sector - 1) / sector;
  return runs;
}

// Lanes at the same address are served one after the other; each time, the sectors of those that are served then count.
void atomic_cost(const Request& request, Cost& cost) {
  std::uint64_t address[warp];
  const unsigned n = sorted(request, address);
  cost.sectors = 0;
  for (unsigned i = 0; i < n;) {
    const std::uint64_t in = address[i] / sector;
    unsigned deepest = 0, depth = 0;
    for (; i < n && address[i] / sector == in; ++i) {
      depth = i > 0 && address[i] == address[i - 1] ? depth + 1 : 1;
      deepest = std::max(deepest, depth);
    }
    cost.sectors += deepest;
  }
}

void shared_cost(const Request& request, Cost& cost, bool alone) {
  // A pass serves 32 lanes of up to 4 bytes, 16 of 8, 8 of 16; twice as many where neighbours ask for the same (measured with
  // ncu on an H200: benchmarks/micro/shared_wide_sharing.cu, atomic_patterns.cu).
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

}  // namespace simt
