// Adds up the number and the cost of requests and blocks: sums per place in the code, and totals of the launch.
#include <algorithm>

#include "count/counter.h"

namespace simt {

void Tally::add(const Tally& other) {
  executions += other.executions;
  lanes += other.lanes;
  bytes += other.bytes;
  used += other.used;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  wavefronts += other.wavefronts;
  ideal_wavefronts += other.ideal_wavefronts;
  distinct += other.distinct;
  deepest += other.deepest;
  diverged += other.diverged;
  joined += other.joined;
  arrivals += other.arrivals;
  arrived += other.arrived;
}

// Of `arrays_`: the first is for what lies below all arrays.
std::size_t Counter::array_of(std::uint64_t address) const {
  const auto& starts = counting_->starts;
  return static_cast<std::size_t>(std::upper_bound(starts.begin(), starts.end(), address) - starts.begin());
}

void Counter::flush(Spot& spot, Pattern& pattern) {
  const std::uint64_t count = std::exchange(pattern.times, 0);
  if (!count) return;
  const double times = static_cast<double>(count), lanes = __builtin_popcount(pattern.lanes),
               weighted = times * flushed_weight_;
  const Cost& cost = pattern.cost;
  Tally& tally = spot.tally[static_cast<std::size_t>(pattern.space)];
  tally.executions += weighted;
  tally.lanes += weighted * lanes;
  tally.bytes += weighted * lanes * spot.bytes;
  tally.used += weighted * cost.used;
  tally.sectors += weighted * cost.sectors;
  // the store before it may have had another pattern, and is counted with this one
  tally.joined += static_cast<double>(std::exchange(pattern.joined, 0) * cost.sectors) * flushed_weight_;
  tally.ideal_sectors += weighted * cost.ideal_sectors;
  tally.wavefronts += weighted * cost.wavefronts;
  tally.ideal_wavefronts += weighted * cost.ideal_wavefronts;
  tally.distinct += weighted * cost.distinct;
  tally.deepest += weighted * cost.deepest;
  const bool atomic = spot.event == Event::atomic;
  if (atomic && pattern.space != Space::ignored) {
    now_[atomic_requests] += times;
    now_[atomic_lanes] += times * lanes;
  }
  if (pattern.space == Space::global) {
    now_[global_requests] += times;
    now_[global_sectors] += times * cost.sectors;
    if (spot.event == Event::read) {
      ArraySectors& array = arrays_[array_of(pattern.base)];
      array.requested += weighted * cost.sectors;
      array.lanes += weighted * lanes;
      if (are_regular(pattern.span, pattern.spans)) array.regular += weighted * lanes;
    } else if (atomic) {
      arrays_[array_of(pattern.base)].atomics += weighted;
    }
  } else if (pattern.space == Space::shared) {
    now_[shared_requests] += times;
    now_[shared_wavefronts] += times * cost.wavefronts;
  } else if (pattern.space == Space::local) {
    now_[local_requests] += times;
  } else if (pattern.space == Space::constant) {
    now_[constant_requests] += times;
  }
}

void Counter::flush(Spot& spot) {
  Tally& tally = spot.tally[itself];
  if (spot.diverged) {
    tally.diverged += static_cast<double>(spot.diverged) * flushed_weight_;
    now_[diverged_branches] += static_cast<double>(spot.diverged);
    spot.diverged = 0;
  }
  if (spot.arrivals) {
    tally.arrivals += static_cast<double>(spot.arrivals) * flushed_weight_;
    tally.arrived += static_cast<double>(spot.arrived) * flushed_weight_;
    now_[warp_instructions] += static_cast<double>(spot.arrivals);
    now_[thread_instructions] += static_cast<double>(spot.arrived);
    spot.arrivals = spot.arrived = 0;
  }
  if (!spot.times) return;
  const double times = static_cast<double>(spot.times), lanes = __builtin_popcount(spot.lanes);
  spot.times = 0;
  tally.executions += times * flushed_weight_;
  tally.lanes += times * lanes * flushed_weight_;
  if (spot.block >= 0) {
    now_[warp_instructions] += times * spot.instructions;
    now_[thread_instructions] += times * lanes * spot.instructions;
    now_[flops] += times * lanes * spot.flops;
    if (spot.branches) now_[branches] += times;
  } else {
    now_[spot.together == Together::exchange ? exchanges : barriers] += times;
  }
}

void Counter::flush_all() {
  for (Spot& spot : spots_) {
    flush(spot);
    for (auto& pattern : spot.pattern)
      if (pattern) flush(spot, *pattern);
  }
  for (unsigned i = 0; i < totals; ++i) sum_[i] += now_[i] * flushed_weight_;
}

}  // namespace simt
