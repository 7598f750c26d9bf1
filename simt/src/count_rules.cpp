// Sectors, wavefronts and bank conflicts of one request.
#include "count_rules.h"

#include <algorithm>
#include <cstring>

namespace simt {
namespace {

constexpr unsigned warp = 32, sector = 32, banks = 32, bank_bytes = 4;

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

// Whether of each two lanes one apart, or of each two lanes two apart, one is inactive or both ask for the same.
bool alike(const Request& request, unsigned from, unsigned count) {
  for (unsigned apart : {1u, 2u}) {
    bool all = true;
    for (unsigned lane = from; lane < from + count && all; ++lane) {
      const unsigned other = lane ^ apart;
      if (request.lanes >> lane & 1 && request.lanes >> other & 1) all = request.address[lane] == request.address[other];
    }
    if (all) return true;
  }
  return false;
}

}  // namespace

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
    const std::uint64_t first = std::max(from / sector, next_sector), last = (to - 1) / sector;
    if (last >= first) {
      cost.sectors += static_cast<std::uint32_t>(last - first + 1);
      next_sector = last + 1;
    }
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
  // A pass serves 32 lanes of up to 4 bytes, 16 of 8, 8 of 16; twice as many where neighbours ask for the same, or only one
  // of each two asks (seen with ncu on an H200: a float4 that all lanes read takes 2 passes, where 4 that differ take 4).
  const unsigned lanes = request.bytes <= 4 ? 32 : request.bytes <= 8 ? 16 : 8, most = std::min(32u, 2 * lanes);
  for (unsigned from = 0; from < warp; from += most) {
    const unsigned group = lanes == most || (!alone && alike(request, from, most)) ? most : lanes;
    for (unsigned first = from; first < from + most; first += group) {
      const std::uint32_t inside = group == 32 ? ~0u : ((1u << group) - 1) << first;
      if (!(request.lanes & inside)) continue;
      cost.wavefronts += passes(request, first, group, alone);
      ++cost.ideal_wavefronts;
    }
  }
}

}  // namespace simt
