// Follows a launch for the checks: which memory its kernel may use, and how blocks and barriers change the recorded
// accesses.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "check/parts.h"
#include "run/monitor.h"

namespace simt {

CheckedLaunch checked;

namespace {
// Tensors that Python passed, guarded by check_mutex.
std::vector<std::pair<std::uintptr_t, std::size_t>> arguments;
}  // namespace

void note_argument(const void* base, std::size_t bytes) {
  std::lock_guard lock(check_mutex);
  arguments.emplace_back(reinterpret_cast<std::uintptr_t>(base), bytes);
}

std::vector<Extent> noted_arguments() {
  std::lock_guard lock(check_mutex);
  std::vector<Extent> all;
  for (const auto& [base, bytes] : arguments)
    if (base && bytes) all.push_back({base, bytes});
  return all;
}

void forget_arguments() {
  std::lock_guard lock(check_mutex);
  arguments.clear();
}

void begin_checked(Job& job) {
  free_places();
  std::vector<Region> regions;
  for (const Extent& extent : extents()) regions.push_back({extent.base, extent.bytes, Slot::global});
  {
    std::lock_guard lock(check_mutex);
    for (const auto& [base, bytes] : arguments) regions.push_back({base, bytes, Slot::global});
  }
  if (job.module) {
    const auto& variables = job.module->variables;
    for (std::size_t i = 0; i < variables.size(); ++i)
      regions.push_back({job.module->base + variables[i].offset, variables[i].bytes,
                         variables[i].name.empty() ? Slot::ignored : Slot::global, -1, static_cast<int>(i)});
  }
  std::erase_if(regions, [](const Region& r) { return r.bytes == 0; });
  std::stable_sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.base < b.base; });
  // A tensor argument may already be listed as an allocation, or share storage with another tensor.
  std::vector<Region> apart;
  for (const Region& region : regions) {
    if (!apart.empty() && region.base < apart.back().base + apart.back().bytes) {
      Region& before = apart.back();
      before.bytes = std::max(before.base + before.bytes, region.base + region.bytes) - before.base;
    } else {
      apart.push_back(region);
    }
  }
  checked.regions = std::move(apart);
  checked.host_low = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  checked.host_bytes = 8 << 20;
  checked.handovers.clear();
  checked.began = next_moment();
}

std::vector<Extent> list_written(const std::vector<CheckObserver*>& observers) {
  std::vector<Extent> all;
  for (CheckObserver* observer : observers) static_cast<Checker*>(observer)->list_written(all);
  std::sort(all.begin(), all.end(), [](const Extent& a, const Extent& b) { return a.base < b.base; });
  std::vector<Extent> apart;
  for (const Extent& each : all) {
    if (apart.empty() || each.base > apart.back().base + apart.back().bytes) {
      apart.push_back(each);
      continue;
    }
    Extent& before = apart.back();
    before.bytes = std::max(before.base + before.bytes, each.base + each.bytes) - before.base;
  }
  return apart;
}

// ---- a worker ----

std::shared_ptr<CheckObserver> make_checker(Worker& worker) { return std::make_shared<Checker>(worker); }

void Checker::begin(Job& job) {
  job_ = &job;
  if (!job.module) return;
  state_.text = job.module->base;
  state_.sites =
      std::min<std::uintptr_t>((job.module->high - job.module->base) >> 2, std::uintptr_t(1) << key::site_bits);
  slots_.assign(state_.sites, empty_slot);
  touched_.clear();
  shared_.clear();
  for (std::size_t i = 0; i < job.arrays.size(); ++i)
    shared_.push_back({reinterpret_cast<std::uintptr_t>(job.module->address_of(job.arrays[i])), job.arrays[i].bytes,
                       Slot::shared, static_cast<int>(i)});
  for (const auto& guard : job.module->guards)
    shared_.push_back({reinterpret_cast<std::uintptr_t>(job.module->address_of(guard)), guard.bytes, Slot::ignored});
  if (job.launch->config.shared > 0)
    shared_.push_back(
        {reinterpret_cast<std::uintptr_t>(worker_.dynamic_base), job.launch->config.shared, Slot::shared, -2});
  shadows_.assign(checked.regions.size() + shared_.size(), Shadow{});
  starts_.clear();
  held_.clear();
  written_before_.clear();
  compared_.clear();
  state_.clock = 0;
  parked_.clear();
  dynamic_ = {};
  taking_ = {};
  called_from = nullptr;
  callers_.clear();
  state_.epoch = epoch_.data();
  state_.written = nullptr;
  leave_place();
  state_.several = job.several;
  std::fill(epoch_.begin(), epoch_.end(), 0);
}

void Checker::end() {
  report_held();
  settle();
  settle_taken();
  state_.slots = nullptr;
}

// Clears the cells after a launch. A few are cleared in place, which avoids page faults in the next launch.
void Checker::clear_cells() {
  note_global_writes();
  constexpr std::size_t few = 32 << 20;
  if (arena_used_ <= few)
    std::memset(arena_, 0, arena_used_);
  else
    madvise(arena_, (arena_used_ + 4095) / 4096 * 4096, MADV_DONTNEED);
  arena_used_ = 0;
}

void Checker::advance() {
  state_.clock += std::uint64_t(1) << key::clock_shift;
  if (state_.clock >> key::clock_shift < key::clock_limit - 1) return;
  // The clock overflows: forget all recorded accesses, so that no false race is reported.
  keep_written();
  state_.clock = std::uint64_t(2) << key::clock_shift;
  std::memset(arena_, 0, arena_used_);
  starts_.clear();
}

void Checker::list_written(std::vector<Extent>& into) const {
  into.insert(into.end(), written_before_.begin(), written_before_.end());
  for (std::size_t i = 0; i < checked.regions.size() && i < shadows_.size(); ++i) {
    const Region& region = checked.regions[i];
    const Shadow& shadow = shadows_[i];
    if (shadow.full) into.push_back({region.base, region.bytes});  // there was no room to note what was written
    if (!shadow.cells) continue;
    const std::size_t piece = std::size_t(1) << shadow.shift, count = (region.bytes >> shadow.shift) + 1;
    for (std::size_t k = 0; k < count; ++k) {
      if (!shadow.cells[k].write) continue;
      const std::uintptr_t at = region.base + k * piece;
      const bool follows = !into.empty() && into.back().base + into.back().bytes == at;
      if (follows)
        into.back().bytes += piece;
      else
        into.push_back({at, piece});
    }
  }
}

void Checker::note_global_writes() const {
  for (std::size_t i = 0; i < checked.regions.size() && i < shadows_.size(); ++i) {
    const Region& region = checked.regions[i];
    const Shadow& shadow = shadows_[i];
    if (region.variable >= 0 || !closed_to_host(region.base)) continue;
    if (shadow.full) note_written(region.base, region.bytes);  // there was no room to note what was written
    if (!shadow.cells || !shadow.wrote) continue;
    const std::size_t count = (region.bytes >> shadow.shift) + 1;
    for (std::size_t from = 0, to = 0; from < count; from = to + 1) {
      while (from < count && !shadow.cells[from].write) ++from;
      for (to = from; to < count && shadow.cells[to].write;) ++to;
      if (from < to) note_written(region.base + (from << shadow.shift), (to - from) << shadow.shift, shadow.shift);
    }
    for (unsigned k = 0; k < launch().argument_count; ++k) {
      const Argument& argument = launch().arguments[k];
      const auto array = reinterpret_cast<std::uintptr_t>(argument.pointer);
      if (argument.padding && array >= region.base && array < region.base + region.bytes)
        note_padding(array, argument.element, argument.padding);
    }
  }
}

void Checker::keep_written() {
  note_global_writes();
  if (!monitored() || !orders().record) return;
  std::vector<Extent> all;
  list_written(all);
  written_before_ = std::move(all);
}

void Checker::block_starts(std::uint64_t linear) {
  report_held();
  settle();
  state_.slots = nullptr;
  if (!job_->module) return;
  advance();
  block_ = linear;
  barrier_line_ = 0;
  handed_.clear();
  starts_.push_back({state_.clock >> key::clock_shift, linear});
  state_.began = state_.began_global = state_.clock;
  std::fill(epoch_.begin(), epoch_.end(), 0);
  if (warps_synced_) std::fill(seen_.begin(), seen_.end(), 0);
  warps_synced_ = 0;
  state_.slots = slots_.data();
}

void Checker::block_resumes(std::uint64_t linear) {
  restore_shared(parked_[linear]);
  advance();
  block_ = linear;
  barrier_line_ = 0;
  handed_.clear();
  starts_.push_back({state_.clock >> key::clock_shift, block_});
  state_.began_global = state_.clock;
}

void Checker::blocks_met() {
  report_held();
  settle();
  keep_written();
  for (std::size_t i = 0; i < checked.regions.size(); ++i)
    if (shadows_[i].cells)
      std::memset(shadows_[i].cells, 0, ((checked.regions[i].bytes >> shadows_[i].shift) + 1) * sizeof(Cell));
}

void Checker::barrier(int line) {
  barrier_line_ = line;
  report_held();
  settle();
  settle_taken();
  advance();
  handed_.clear();
  if (!warps_synced_) return;
  std::fill(epoch_.begin(), epoch_.end(), 0);
  std::fill(seen_.begin(), seen_.end(), 0);
  warps_synced_ = 0;
}

void Checker::warp_synced(unsigned warp, unsigned lanes) {
  std::uint16_t* seen = seen_.data() + warp * 32 * 32;
  std::uint16_t all[32] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    for (unsigned other = 0; other < 32; ++other) all[other] = std::max(all[other], seen[lane * 32 + other]);
    all[lane] = static_cast<std::uint16_t>(epoch_[warp * 32 + lane] + 1);
  }
  constexpr std::uint16_t last = (1 << key::epoch_bits) - 1;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(lanes >> lane & 1)) continue;
    std::copy(all, all + 32, seen + lane * 32);
    std::uint16_t& epoch = epoch_[warp * 32 + lane];
    if (epoch < last) ++epoch;
  }
  warps_synced_ |= 1u << warp;
  handed_.warp_synced(warp, lanes);
}

// The thread's further accesses do not belong to those that it has published.
void Checker::handed_over() {
  constexpr std::uint16_t last = (1 << key::epoch_bits) - 1;
  std::uint16_t& epoch = epoch_[cursor.current];
  if (epoch < last) ++epoch;
  warps_synced_ |= 1u << cursor.current / 32;
}

void Checker::block_parks(std::uint64_t block) {
  settle();
  std::vector<Cell>& into = parked_[block];
  into.clear();
  into.push_back(
      Cell{state_.began, 0, 0, 0, 0});  // later writes are this block's own, even if another block began after them
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    const Shadow& shadow = shadows_[checked.regions.size() + i];
    const std::size_t count = shadow.cells ? (shared_[i].bytes >> shadow.shift) + 1 : 0;
    into.push_back(Cell{shadow.shift, count, 0, 0, 0});
    into.insert(into.end(), shadow.cells, shadow.cells + count);
  }
}

void Checker::restore_shared(const std::vector<Cell>& from) {
  settle();
  std::size_t at = 0;
  if (!from.empty()) state_.began = from[at++].write;
  for (std::size_t i = 0; i < shared_.size() && at < from.size(); ++i) {
    Shadow& shadow = shadows_[checked.regions.size() + i];
    const Cell head = from[at++];
    const std::size_t count = static_cast<std::size_t>(head.read);
    const auto was = static_cast<std::uint8_t>(head.write);
    if (count && shadow.cells && was >= shadow.shift) {
      // Another block may have needed smaller pieces in the meantime.
      const unsigned each = 1u << (was - shadow.shift);
      const std::size_t now = (shared_[i].bytes >> shadow.shift) + 1;
      for (std::size_t k = 0; k < now; ++k) shadow.cells[k] = from[at + std::min(k / each, count - 1)];
    } else if (shadow.cells) {
      std::memset(shadow.cells, 0, ((shared_[i].bytes >> shadow.shift) + 1) * sizeof(Cell));
    }
    at += count;
  }
}

}  // namespace simt
