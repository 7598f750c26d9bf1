// Checks an access: finds the memory that it touches and calls the check for that memory.
#include "check/checker.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <mutex>

#include "check/parts.h"
#include "run/options.h"

namespace simt {

__thread ProbeState probe_state;
__thread const void* called_from;

namespace {

// Where a limit (ulimit -v) holds for address space, all workers' arenas together take a quarter of it: stacks, torch and
// the program itself need the rest.
std::size_t most_arena_bytes() {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return std::size_t(1) << 40;
  return static_cast<std::size_t>(limit.rlim_cur) / 4 / static_cast<std::size_t>(std::max(1, options().threads));
}

}  // namespace

Checker::Checker(Worker& worker)
    : worker_(worker), state_(probe_state), epoch_(max_threads), seen_(max_warps * 32 * 32) {
  // Reserves address space only; pages are allocated on use.
  for (std::size_t bytes = most_arena_bytes(); bytes >= std::size_t(1) << 24 && !arena_; bytes /= 4) {
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) continue;
    arena_ = static_cast<char*>(map);
    arena_bytes_ = bytes;
  }
}

// Returns zeroed memory that begins with a cache line, or null.
void* Checker::take(std::size_t bytes) {
  bytes = (bytes + 63) / 64 * 64;
  if (bytes > arena_bytes_ - arena_used_) return nullptr;
  char* at = arena_ + arena_used_;
  arena_used_ += bytes;
  return at;
}

const Region& Checker::region(std::size_t index) const {
  return index < checked.regions.size() ? checked.regions[index] : shared_[index - checked.regions.size()];
}

const Region* Checker::region_of(std::uintptr_t address, std::size_t& index) {
  for (std::size_t i = 0; i < shared_.size(); ++i)
    if (address - shared_[i].base < shared_[i].bytes) {
      index = checked.regions.size() + i;
      return &shared_[i];
    }
  auto after = std::upper_bound(checked.regions.begin(), checked.regions.end(), address,
                                [](std::uintptr_t a, const Region& r) { return a < r.base; });
  if (after == checked.regions.begin()) return nullptr;
  --after;
  if (address - after->base >= after->bytes) return nullptr;
  index = static_cast<std::size_t>(after - checked.regions.begin());
  return &*after;
}

void Checker::forget_slots() {
  for (const std::uint32_t site : touched_) slots_[site] = empty_slot;
  touched_.clear();
}

void Checker::remember(std::uintptr_t site, const Slot& slot) {
  if (site >= state_.sites) return;
  slots_[site] = slot;
  touched_.push_back(static_cast<std::uint32_t>(site));
}

// Replaces a region's cells by cells for smaller pieces, each with the content of the larger cell.
void Checker::refine(std::size_t index, std::uint8_t shift) {
  Shadow& shadow = shadows_[index];
  const std::size_t bytes = region(index).bytes, old_count = (bytes >> shadow.shift) + 1, count = (bytes >> shift) + 1;
  settle();
  auto* cells = static_cast<Cell*>(take(count * sizeof(Cell)));
  auto* earlier = shadow.earlier ? static_cast<Earlier*>(take(count * sizeof(Earlier))) : nullptr;
  if (cells && shadow.cells) {
    const unsigned each = 1u << (shadow.shift - shift);
    for (std::size_t i = 0; i < old_count; ++i)
      for (unsigned k = 0; k < each && i * each + k < count; ++k) {
        Cell& cell = cells[i * each + k] = shadow.cells[i];
        if (earlier)
          earlier[i * each + k] = shadow.earlier[i];
        else
          cell.write &= ~key::many;
      }
  }
  shadow.cells = cells;
  shadow.earlier = earlier;
  shadow.full = !cells;
  shadow.shift = shift;
  forget_slots();
}

// Returns a region's cells, for pieces that are small enough for an access.
Checker::Shadow& Checker::fine_enough(std::size_t index, std::uintptr_t address, std::size_t bytes) {
  Shadow& shadow = shadows_[index];
  const std::uint8_t exact = address % 4 == 0 && bytes % 4 == 0 ? 2 : address % 2 == 0 && bytes % 2 == 0 ? 1 : 0;
  if (shadow.full) return shadow;
  // The probes look for a word of which a part was never written only where the pieces are smaller than a word.
  const bool first = !shadow.cells && index < checked.regions.size();
  const std::uint8_t wanted = std::min(exact, first ? smallest_piece(address) : shadow.shift);
  if (!shadow.cells || wanted < shadow.shift) refine(index, std::min(wanted, shadow.shift));
  return shadow;
}

void Checker::access(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  const Critical critical(worker_);
  settle_taken();
  const std::uintptr_t site = (reinterpret_cast<std::uintptr_t>(code) - state_.text) >> 2;
  std::size_t index = 0;
  const Fiber* fiber = worker_.fiber;
  const auto low = reinterpret_cast<std::uintptr_t>(fiber->low), top = reinterpret_cast<std::uintptr_t>(fiber->top);
  if (address - low < top - low) {
    const Region stack{low, top - low, Slot::local};
    if (!(access & as_bytes) && (bytes & (bytes - 1)) == 0 && address & (bytes - 1))
      misaligned(stack, address, bytes, access, code);
    if (!(access & writing)) unwritten(stack, nullptr, address, bytes, access, code);
    const auto arena = reinterpret_cast<std::uintptr_t>(worker_.stacks);
    if (address - arena < worker_.stacks_bytes)
      remember(site, Slot{arena, worker_.stacks_bytes, nullptr, 0, Slot::local});
    return;
  }
  const Region* found = region_of(address, index);
  if (found && found->kind == Slot::ignored)
    return remember(site, Slot{found->base, found->bytes, nullptr, 0, Slot::ignored});
  if (!found || address + bytes > found->base + found->bytes) {
    if (!found && (in_heap(address, bytes, access, code) || ignorable(address, access))) return;
    const Module& module = *job_->module;
    if (!found && module.contains(address) && !(address >= module.data_low && address < module.data_high))
      return;   // the extension's own constants
    Module library{};
    if (!found && !module.contains(address) && find_library(reinterpret_cast<const void*>(address), library)) return;
    return outside(address, bytes, access, code);
  }
  if (found->variable >= 0 && refused(*found, address, bytes, access, code)) return;
  if (!(access & as_bytes) && (bytes & (bytes - 1)) == 0 && address & (bytes - 1))
    misaligned(*found, address, bytes, access, code);
  // A volatile access of global memory is never torn or omitted, so it counts as atomic. In shared memory volatile
  // accesses once replaced __syncwarp(), which is no longer correct: there, only a write after a fence counts.
  const bool shared = found->kind == Slot::shared, is_volatile = access & as_volatile;
  const bool is_flag = is_volatile && shared && access & writing && handed_.has_fenced(cursor.current);
  if (is_flag || (is_volatile && !shared)) access |= atomically;
  Shadow& shadow = fine_enough(index, address, bytes);
  if (!(access & writing) || access & modifying) unwritten(*found, &shadow, address, bytes, access, code);
  if (access & atomically || is_volatile) {
    if (access & writing && !is_volatile) note_atomic(code, access >> kind_shift, job_->launch->site.kernel);
    const bool writes = access & atomically && access & writing;
    const bool reads = !(access & writing) || access & modifying || !is_volatile;
    const unsigned me = cursor.current;
    if (shared) {
      handed_.atomic(address, me, epoch_[me], seen_.data() + me * 32, reads, writes);
    } else {
      std::lock_guard lock(check_mutex);
      const Handovers::Moment now = this->now();
      checked.handovers.atomic(address, now, reads, writes);
      if (reads) taking_ = {address, now};
    }
  }
  if (shadow.cells) look(index, address, bytes, access, code);
  if (is_flag) handed_over();
  remember(site, Slot{found->base, found->bytes, shadow.cells, shadow.shift, found->kind});
}

void Checker::misaligned(const Region& region, std::uintptr_t address, std::size_t bytes, unsigned access,
                         const void* code) {
  Finding finding;
  finding.check = "misaligned";
  finding.what = verb(access);
  locate(finding, code);
  name(finding, region, address, bytes);
  Region array = region;
  if (region.kind == Slot::local) {
    // A GPU's stack aligns a small array better than this one, so only the place within the variable counts.
    const LocalVariable variable = name_local(finding, address);
    array.base = variable.base;
    array.bytes = variable.bytes;
    if ((address - array.base) % bytes == 0 || array.bytes == 0) return;
  }
  finding.type = std::to_string(bytes);
  finding.column = static_cast<int>((region.kind == Slot::local ? address - array.base : address) % bytes);
  if (const auto at = address - array.base; at % finding.element) {  // within an element: in bytes, then
    finding.element = 1;
    finding.index = static_cast<std::int64_t>(at);
    finding.elements = array.bytes;
  }
  add_finding(std::move(finding));
}

void check_access(const void* address, std::size_t bytes, unsigned access, const void* code) {
  checker_of(this_worker)
      ->access(reinterpret_cast<std::uintptr_t>(address), bytes, access, called_from ? called_from : code);
}

void handed_over() {
  if (Checker* checker = checker_of(this_worker)) checker->handed_over();
}

void check_fence(int) { checker_of(this_worker)->fence(); }

void settle_write() { checker_of(this_worker)->settle(); }

void hold_place(const void* address) { checker_of(this_worker)->take_place(reinterpret_cast<std::uintptr_t>(address)); }

}  // namespace simt
