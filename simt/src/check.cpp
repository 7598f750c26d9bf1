// Judges the accesses of a checked build: bounds, alignment, memory that nobody wrote, and races.
#include "check.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <tuple>

#include "options.h"

namespace simt {

__thread ProbeState probe_state;

namespace {

std::mutex mutex;             // of everything here that workers share
using FindingKey = std::tuple<std::string, std::string, std::uintptr_t, int, std::uintptr_t>;
std::map<FindingKey, Finding>& findings() {
  static auto* all = new std::map<FindingKey, Finding>;
  return *all;
}
std::map<std::uintptr_t, AtomicSite>& atomics() {
  static auto* all = new std::map<std::uintptr_t, AtomicSite>;
  return *all;
}
std::vector<std::pair<std::uintptr_t, std::size_t>> arguments;
CheckedLaunch checked;        // one launch runs at a time

constexpr std::size_t most_findings = 200;
constexpr Slot empty_slot{std::uintptr_t(1) << 63, 16, nullptr, 0, Slot::unknown};

auto order_of(const Finding& f) {
  return std::tuple(f.block.z, f.block.y, f.block.x, f.thread.z, f.thread.y, f.thread.x, f.other_thread.z, f.other_thread.y, f.other_thread.x);
}

}  // namespace

void add_finding(Finding finding) {
  std::lock_guard lock(mutex);
  const FindingKey key{finding.check, finding.what + finding.kernel + finding.message, finding.code, finding.line, finding.other_code};
  static std::uint64_t moment = 0;
  finding.first = ++moment;
  auto found = findings().find(key);
  if (found == findings().end()) {
    if (findings().size() < most_findings) findings().emplace(key, std::move(finding));
    return;
  }
  // Of many, the one that is told must not depend on which worker was first.
  const std::uint64_t count = found->second.count + finding.count;
  finding.first = found->second.first;
  if (order_of(finding) < order_of(found->second)) found->second = std::move(finding);
  found->second.count = count;
}

Finding finding_of(const Fault& fault) {
  Finding finding;
  finding.check = fault.reason;
  finding.message = fault.message;
  finding.kernel = fault.kernel;
  finding.file = fault.file;
  finding.line = fault.line ? fault.line : fault.code.empty() ? fault.defined : 0;
  finding.in_thread = fault.in_thread;
  finding.block = fault.block;
  finding.thread = fault.thread;
  finding.places = fault.code;
  return finding;
}

std::vector<Finding> take_findings() {
  std::lock_guard lock(mutex);
  std::vector<Finding> all;
  for (auto& [key, finding] : findings()) all.push_back(std::move(finding));
  findings().clear();
  return all;
}

std::map<std::uintptr_t, AtomicSite> take_atomics() {
  std::lock_guard lock(mutex);
  return std::exchange(atomics(), {});
}

void note_argument(const void* base, std::size_t bytes) {
  std::lock_guard lock(mutex);
  arguments.emplace_back(reinterpret_cast<std::uintptr_t>(base), bytes);
}

void forget_arguments() {
  std::lock_guard lock(mutex);
  arguments.clear();
}

// ---- handovers ----

void Handovers::clear() {
  variables_.clear();
  taken_.clear();
  fenced_.clear();
  own_.clear();
}

void Handovers::fence(const Moment& now) {
  fenced_[now.block] = now.phase + 1;
  own_[{now.block, now.thread}] = now.phase + 1;
}

void Handovers::atomic(std::uintptr_t address, const Moment& now, bool reads, bool writes) {
  Variable& variable = variables_[address];
  if (reads && !variable.given.empty()) {
    auto& all = taken_[now.block];
    auto same = std::find_if(all.rbegin(), all.rend(), [&](const Taken& t) { return t.from == &variable && t.when.thread == now.thread && t.when.phase == now.phase; });
    if (same != all.rend()) same->count = variable.given.size();
    else all.push_back({now, &variable, variable.given.size()});
  }
  if (!writes) return;
  const auto block = fenced_.find(now.block);
  if (block == fenced_.end()) return;
  const auto own = own_.find({now.block, now.thread});
  const bool now_fenced = own != own_.end() && own->second == now.phase + 1;
  // A fence of this thread in this phase hands over all phases before it; one of any thread before a barrier, those up to it.
  const std::uint64_t all_before = now_fenced ? now.phase : std::min(block->second, now.phase);
  if (!now_fenced && all_before == 0) return;
  variable.of_block.emplace(now.block, variable.given.size());
  variable.given.push_back({now, all_before, now_fenced});
}

bool Handovers::ordered(const Moment& before, const Moment& after, int depth) const {
  if (before.block == after.block && before.phase < after.phase) return true;
  if (depth > 4) return false;
  const auto all = taken_.find(after.block);
  if (all == taken_.end()) return false;
  for (const Taken& taken : all->second) {
    if (!(taken.when.phase < after.phase || (taken.when.phase == after.phase && taken.when.thread == after.thread))) continue;
    auto [from, to] = taken.from->of_block.equal_range(before.block);
    for (auto it = from; it != to; ++it) {
      if (it->second >= taken.count) continue;
      const Given& given = taken.from->given[it->second];
      if (before.phase < given.all_before || (given.own && given.by.thread == before.thread && before.phase <= given.by.phase)) return true;
    }
    if (depth == 4) continue;
    // Handed on: whoever gave it may have taken it from somebody else.
    for (std::size_t i = 0; i < taken.count && i < 64; ++i) {
      const Moment& by = taken.from->given[i].by;
      if (by.block != before.block && by.block != after.block && ordered(before, by, depth + 1)) return true;
    }
  }
  return false;
}

// ---- a worker's part ----

Checker::Checker(Worker& worker) : worker_(worker), state_(probe_state), epoch_(max_threads), seen_(max_warps * 32 * 32) {
  // Address space only: pages come with use. A limit on it (ulimit -v) may allow less.
  for (std::size_t bytes = std::size_t(1) << 40; bytes >= std::size_t(1) << 26 && !arena_; bytes >>= 2) {
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) continue;
    arena_ = static_cast<char*>(map);
    arena_bytes_ = bytes;
  }
}

Cell* Checker::take_cells(std::size_t count) {
  const std::size_t bytes = count * sizeof(Cell);
  if (bytes > arena_bytes_ - arena_used_) return nullptr;
  char* at = arena_ + arena_used_;
  arena_used_ += bytes;
  return reinterpret_cast<Cell*>(at);
}

void Checker::begin(Job& job) {
  job_ = &job;
  if (!job.module) return;
  state_.text = job.module->base;
  state_.sites = std::min<std::uintptr_t>((job.module->high - job.module->base) >> 2, std::uintptr_t(1) << key::site_bits);
  slots_.assign(state_.sites, empty_slot);
  touched_.clear();
  shared_.clear();
  for (std::size_t i = 0; i < job.arrays.size(); ++i)
    shared_.push_back({reinterpret_cast<std::uintptr_t>(job.module->address_of(job.arrays[i])), job.arrays[i].bytes, Slot::shared, static_cast<int>(i)});
  for (const auto& guard : job.module->guards)
    shared_.push_back({reinterpret_cast<std::uintptr_t>(job.module->address_of(guard)), guard.bytes, Slot::ignored});
  if (job.launch->config.shared > 0)
    shared_.push_back({reinterpret_cast<std::uintptr_t>(worker_.dynamic_base), job.launch->config.shared, Slot::shared, -2});
  shadows_.assign(checked.regions.size() + shared_.size(), Shadow{});
  starts_.clear();
  state_.clock = 0;
  state_.epoch = epoch_.data();
  state_.written = nullptr;
  std::fill(epoch_.begin(), epoch_.end(), 0);
}

void Checker::end() {
  settle();
  state_.slots = nullptr;
}

// Cells of a launch that is over; few are cleared in place, which spares the page faults of the next.
void Checker::clear_cells() {
  constexpr std::size_t few = 32 << 20;
  if (arena_used_ <= few) std::memset(arena_, 0, arena_used_);
  else madvise(arena_, (arena_used_ + 4095) / 4096 * 4096, MADV_DONTNEED);
  arena_used_ = 0;
}

void Checker::advance() {
  state_.clock += std::uint64_t(1) << key::clock_shift;
  if (state_.clock >> key::clock_shift < key::clock_limit - 1) return;
  // The clock is full: what was known is forgotten, so that nothing is told that did not happen.
  state_.clock = std::uint64_t(2) << key::clock_shift;
  std::memset(arena_, 0, arena_used_);
  starts_.clear();
}

void Checker::block_starts(std::uint64_t linear) {
  settle();
  state_.slots = nullptr;
  if (!job_->module) return;
  advance();
  block_ = linear;
  starts_.push_back({state_.clock >> key::clock_shift, linear});
  state_.began = state_.began_global = state_.clock;
  std::fill(epoch_.begin(), epoch_.end(), 0);
  if (warps_synced_) std::fill(seen_.begin(), seen_.end(), 0);
  warps_synced_ = 0;
  state_.slots = slots_.data();
}

void Checker::block_resumes(std::uint64_t linear) {
  advance();
  block_ = linear;
  starts_.push_back({state_.clock >> key::clock_shift, block_});
  state_.began_global = state_.clock;
}

void Checker::barrier() {
  settle();
  advance();
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
}

const Region* Checker::region_of(std::uintptr_t address, std::size_t& index) {
  for (std::size_t i = 0; i < shared_.size(); ++i)
    if (address - shared_[i].base < shared_[i].bytes) {
      index = checked.regions.size() + i;
      return &shared_[i];
    }
  auto after = std::upper_bound(checked.regions.begin(), checked.regions.end(), address, [](std::uintptr_t a, const Region& r) { return a < r.base; });
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

// Cells for smaller pieces, each with what was known of the whole.
void Checker::refine(std::size_t index, std::uint8_t shift) {
  Shadow& shadow = shadows_[index];
  const std::size_t bytes = region(index).bytes, old_count = (bytes >> shadow.shift) + 1, count = (bytes >> shift) + 1;
  settle();
  Cell* cells = take_cells(count);
  if (cells && shadow.cells) {
    const unsigned each = 1u << (shadow.shift - shift);
    for (std::size_t i = 0; i < old_count; ++i)
      for (unsigned k = 0; k < each && i * each + k < count; ++k) cells[i * each + k] = shadow.cells[i];
  }
  shadow.cells = cells;
  shadow.full = !cells;
  shadow.shift = shift;
  forget_slots();
}

void Checker::settle() {
  if (!state_.written) return;
  const auto* at = static_cast<const char*>(state_.written_at);
  const std::size_t step = std::size_t(1) << state_.written_shift;
  for (unsigned i = 0; i < state_.written_cells; ++i) {
    std::uint32_t value = 0;
    std::memcpy(&value, at + i * step, step);
    state_.written[i].value = value;
  }
  state_.written = nullptr;
  if (!judged_) return;
  // Two writes without order: harmless only if they wrote the same.
  const auto judged = std::move(judged_);
  bool same = true;
  at = static_cast<const char*>(judged->at);
  for (std::size_t i = 0; i < judged->before.size(); ++i) {
    std::uint32_t value = 0;
    std::memcpy(&value, at + (i << judged->shift), std::size_t(1) << judged->shift);
    same = same && value == judged->before[i];
  }
  judged->finding.warning = same;
  add_finding(std::move(judged->finding));
}

namespace {

uint3 thread_at(unsigned linear, const dim3& block) { return {linear % block.x, linear / block.x % block.y, linear / (block.x * block.y)}; }

const char* verb(unsigned access) { return access & atomically ? "atomic" : access & writing ? "write" : "read"; }

// The names of the kernel's parameters.
std::vector<std::string> parameters(const Launch& launch) {
  std::vector<std::string> names(1);
  for (const char* c = launch.site.parameters; c && *c; ++c) {
    if (*c == ',') names.emplace_back();
    else names.back() += *c;
  }
  return names;
}

}  // namespace

const Region& Checker::region(std::size_t index) const {
  return index < checked.regions.size() ? checked.regions[index] : shared_[index - checked.regions.size()];
}

void Checker::locate(Finding& finding, const void* code) const {
  const Launch& launch = *job_->launch;
  finding.kernel = launch.site.kernel;
  finding.file = launch.site.file;
  finding.code = reinterpret_cast<std::uintptr_t>(code);
  finding.in_thread = true;
  finding.block = blockIdx;
  finding.thread = thread_at(cursor.current, blockDim);
}

Handovers::Moment Checker::moment(std::uint64_t k) const {
  auto after = std::upper_bound(starts_.begin(), starts_.end(), key::clock(k), [](std::uint64_t c, const BlockStart& s) { return c < s.clock; });
  const BlockStart start = after == starts_.begin() ? BlockStart{0, block_} : *std::prev(after);
  return {start.block, key::thread(k), key::clock(k) - start.clock};
}

void Checker::describe_other(Finding& finding, std::uint64_t k) const {
  const dim3& grid = job_->launch->config.grid;
  const std::uint64_t block = moment(k).block;
  finding.has_other = true;
  finding.other_block = {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
                         static_cast<unsigned>(block / grid.x / grid.y)};
  finding.other_thread = thread_at(key::thread(k), job_->launch->config.block);
  finding.other_code = state_.text + (std::uintptr_t(key::site(k)) << 2);
}

void Checker::name(Finding& finding, const Region& region, std::uintptr_t address, std::size_t bytes) const {
  const Launch& launch = *job_->launch;
  finding.space = region.kind == Slot::shared ? "shared" : region.kind == Slot::local ? "local" : "global";
  finding.element = bytes;
  if (region.array >= 0) finding.array = job_->arrays[static_cast<std::size_t>(region.array)].name;
  else if (region.variable >= 0) finding.array = job_->module->variables[static_cast<std::size_t>(region.variable)].name;
  else if (region.array != -2) {
    const auto names = parameters(launch);
    for (unsigned i = 0; i < launch.argument_count; ++i) {
      const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
      if (!pointer || pointer < region.base || pointer > region.base + region.bytes) continue;
      finding.element = std::max<std::size_t>(1, std::min(launch.arguments[i].element, bytes));
      finding.array = i < names.size() ? names[i] : "";
      break;
    }
  }
  finding.index = (static_cast<std::int64_t>(address) - static_cast<std::int64_t>(region.base)) / static_cast<std::int64_t>(finding.element);
  if (address < region.base) finding.index = -static_cast<std::int64_t>((region.base - address + finding.element - 1) / finding.element);
  finding.elements = region.bytes / finding.element;
}

// Outside of everything that the kernel may use: which memory was meant?
void Checker::outside(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  Finding finding;
  finding.check = "out_of_bounds";
  finding.what = verb(access);
  locate(finding, code);
  const Launch& launch = *job_->launch;
  const Region* nearest = nullptr;
  std::uintptr_t distance = ~std::uintptr_t(0);
  auto consider = [&](const Region& region, std::uintptr_t most) {
    const std::uintptr_t end = region.base + region.bytes;
    const std::uintptr_t away = address < region.base ? region.base - address : address < end ? 0 : address - end;
    if (away > most || away >= distance) return;
    nearest = &region;
    distance = away;
  };
  // Shared memory first, and only near it: its neighbours in the address space are none of the kernel's.
  for (const Region& region : shared_)
    if (region.kind == Slot::shared) consider(region, region.array == -2 ? 256 * 1024 : 64 * 1024);
  const auto room_end = reinterpret_cast<std::uintptr_t>(worker_.dynamic_shared);
  if (!nearest && address >= room_end - 256 * 1024 && address < room_end + 4096) {
    finding.space = "shared";
    finding.index = static_cast<std::int64_t>(address - room_end);
    finding.message = "no dynamic shared memory";
    return add_finding(std::move(finding));
  }
  if (!nearest) {
    constexpr std::uintptr_t far = std::uintptr_t(1) << 34;       // a 32-bit index times 8 bytes
    std::size_t unused;
    for (unsigned i = 0; i < launch.argument_count; ++i)
      if (const Region* region = region_of(reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer), unused)) consider(*region, far);
    for (const Region& region : checked.regions) consider(region, region.variable >= 0 ? 4096 : 1 << 20);
  }
  if (address >= 65536 && (!nearest || distance > 1 << 20)) {
    const Place place = place_of(address);
    if (place.found && place.freed && address - place.base < place.bytes) {
      finding.check = "illegal_address";
      finding.message = "freed";
      return add_finding(std::move(finding));
    }
  }
  if (address < 65536 || !nearest) {
    finding.check = "illegal_address";
    finding.message = address < 65536 ? "null" : "host";
    return add_finding(std::move(finding));
  }
  name(finding, *nearest, address, bytes);
  if (address + bytes > nearest->base + nearest->bytes && address < nearest->base + nearest->bytes) finding.message = "across";
  add_finding(std::move(finding));
}

// Whether a byte that looks like the mark's is one: a byte alone may be anything, so those around it have to bear the mark
// as well, in both of its values.
static bool looks_unwritten(const Region& region, std::uintptr_t address, std::uint32_t mark) {
  auto is_mark = [&](std::uintptr_t at) { return *reinterpret_cast<const std::uint8_t*>(at) == static_cast<std::uint8_t>(mark >> 8 * (at % 4)); };
  if (!is_mark(address)) return false;
  int alike[2] = {};
  const std::uintptr_t from = std::max(address / 16 * 16, region.base), to = std::min(address / 16 * 16 + 16, region.base + region.bytes);
  for (std::uintptr_t at = from; at < to; ++at) alike[at % 2] += is_mark(at);
  return alike[0] >= 2 && alike[1] >= 2 && alike[0] + alike[1] >= 6;
}

// Memory that nobody has written: in shared memory the cells know it, elsewhere the mark that new memory bears tells it.
void Checker::unwritten(const Region& region, const Shadow* shadow, std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  std::size_t missing = 0, all = 0;
  std::uintptr_t first = 0;
  auto count = [&](bool is_missing, std::uintptr_t at) {
    ++all;
    if (is_missing && missing++ == 0) first = at;
  };
  if (region.kind == Slot::shared) {
    if (!shadow->cells) return;
    const std::size_t from = (address - region.base) >> shadow->shift, to = (address + bytes - 1 - region.base) >> shadow->shift;
    for (std::size_t i = from; i <= to; ++i)
      count(key::clock(shadow->cells[i].write) < key::clock(state_.began), region.base + (i << shadow->shift));
  } else {
    const std::uint32_t mark = region.kind == Slot::local ? local_mark : global_mark;
    if (bytes == 2) {
      std::uint16_t half;
      std::memcpy(&half, reinterpret_cast<const void*>(address), 2);
      count(half == static_cast<std::uint16_t>(mark), address);
    }
    if (bytes == 1) count(looks_unwritten(region, address, mark), address);
    for (std::size_t at = (address + 3) / 4 * 4; bytes >= 4 && at + 4 <= address + bytes; at += 4) {
      std::uint32_t word;
      std::memcpy(&word, reinterpret_cast<const void*>(at), 4);
      count(word == mark, at);
    }
  }
  if (missing == 0) return;
  Finding finding;
  finding.check = "uninitialized";
  finding.what = verb(access);
  finding.warning = missing < all;       // a struct that is copied whole may have padding
  locate(finding, code);
  name(finding, region, first, bytes / std::max<std::size_t>(all, 1));
  if (region.kind == Slot::local) {
    finding.elements = 0;
    for (unsigned i = 1; i <= std::size(locals_); ++i) {
      const LocalVariable& variable = locals_[(next_local_ - i) % std::size(locals_)];
      if (first - variable.base >= variable.bytes) continue;
      finding.array = variable.name;
      finding.index = static_cast<std::int64_t>((first - variable.base) / finding.element);
      finding.elements = variable.bytes / finding.element;
      break;
    }
  }
  add_finding(std::move(finding));
}

// Whether nothing orders the running thread's access after the one of this key.
bool Checker::races(std::uint64_t other, bool shared) const {
  if (other == 0) return false;
  const unsigned me = cursor.current, them = key::thread(other);
  const std::uint64_t then = key::clock(other), now = key::clock(state_.clock);
  if (then == now) {
    if (them == me) return false;
    if (me / 32 == them / 32 && key::epoch(other) < seen_[(me / 32 * 32 + me % 32) * 32 + them % 32]) return false;
  } else {
    if (then >= key::clock(shared ? state_.began : state_.began_global)) return false;    // a barrier lies between
    if (shared) return false;                                                               // left by an earlier block
  }
  std::lock_guard lock(mutex);
  const Handovers::Moment after{block_, me, now - starts_.back().clock};
  return !checked.handovers.ordered(moment(other), after);
}

void Checker::look(std::size_t index, std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  const Region& where = region(index);
  Shadow& shadow = shadows_[index];
  const bool write = access & writing, shared = where.kind == Slot::shared;
  const unsigned me = cursor.current;
  const std::uintptr_t site = (reinterpret_cast<std::uintptr_t>(code) - state_.text) >> 2;
  const std::uint64_t mine = state_.clock | std::uint64_t(epoch_[me]) << key::epoch_shift |
                             (site < state_.sites ? std::uint64_t(site) << key::site_shift : 0) | (access & atomically ? key::atomic : 0) | me;
  const std::size_t from = (address - where.base) >> shadow.shift, to = (address + bytes - 1 - where.base) >> shadow.shift;
  std::uint64_t written = 0, read = 0;      // whom it races with
  for (std::size_t i = from; i <= to; ++i) {
    const Cell& cell = shadow.cells[i];
    const bool both_atomic = access & atomically && cell.write & key::atomic;
    if (!written && !both_atomic && races(cell.write, shared)) written = cell.write;
    if (!write) continue;
    if (!read && races(cell.read, shared)) read = cell.read;
    if (!read && cell.read & key::many && key::clock(cell.read) == key::clock(state_.clock)) {
      const std::uint64_t second = (cell.read & ~((std::uint64_t(1) << key::epoch_shift) - 1)) | cell.second;
      if (races(second, shared)) read = second;
    }
    if (!read && !shared && races(cell.elsewhere, shared)) read = cell.elsewhere;
  }
  settle();
  for (const std::uint64_t other : {written, read}) {
    if (!other) continue;
    Finding finding;
    finding.check = "race";
    finding.what = verb(access);
    finding.other_what = other == read ? "read" : other & key::atomic ? "atomic" : "write";
    locate(finding, code);
    describe_other(finding, other);
    name(finding, where, address, bytes);
    if (other == written && write && !(access & atomically) && !(other & key::atomic)) {
      judged_ = std::make_unique<Judged>(Judged{std::move(finding), {}, reinterpret_cast<const void*>(where.base + (from << shadow.shift)), shadow.shift});
      for (std::size_t i = from; i <= to; ++i) judged_->before.push_back(shadow.cells[i].value);
    } else {
      add_finding(std::move(finding));
    }
  }
  for (std::size_t i = from; i <= to; ++i) {
    Cell& cell = shadow.cells[i];
    if (write) {
      cell.write = mine;
    } else if (!(access & atomically)) {
      if (key::clock(cell.read) == key::clock(state_.clock)) {
        if (key::thread(cell.read) != me && !(cell.read & key::many)) {
          cell.read |= key::many;
          cell.second = static_cast<std::uint32_t>(mine & ((std::uint64_t(1) << key::epoch_shift) - 1));
        }
      } else {
        if (!shared && cell.read && key::clock(cell.read) < key::clock(state_.began_global)) cell.elsewhere = cell.read;
        cell.read = mine;
      }
    }
  }
  if (!write) return;
  shadow.wrote = true;
  state_.written = shadow.cells + from;
  state_.written_at = reinterpret_cast<const void*>(where.base + (from << shadow.shift));
  state_.written_cells = static_cast<unsigned>(to - from + 1);
  state_.written_shift = shadow.shift;
}

bool Checker::ignorable(std::uintptr_t address) const {
  const auto own = reinterpret_cast<std::uintptr_t>(&threadIdx);       // the runtime's thread-local variables
  if (address - (own - 65536) < 131072) {
    for (const Region& region : shared_)
      if (address - region.base + 4096 < region.bytes + 8192) return false;
    return true;
  }
  return address - checked.host_low < checked.host_bytes;
}

void Checker::access(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  const Critical critical(worker_);
  const std::uintptr_t site = (reinterpret_cast<std::uintptr_t>(code) - state_.text) >> 2;
  std::size_t index = 0;
  const Fiber* fiber = worker_.fiber;
  const auto low = reinterpret_cast<std::uintptr_t>(fiber->low), top = reinterpret_cast<std::uintptr_t>(fiber->top);
  if (address - low < top - low) {
    const Region stack{low, top - low, Slot::local};
    if (!(access & writing)) unwritten(stack, nullptr, address, bytes, access, code);
    const auto arena = reinterpret_cast<std::uintptr_t>(worker_.stacks);
    if (address - arena < worker_.stacks_bytes) remember(site, Slot{arena, worker_.stacks_bytes, nullptr, 0, Slot::local});
    return;
  }
  const Region* found = region_of(address, index);
  if (found && found->kind == Slot::ignored) return remember(site, Slot{found->base, found->bytes, nullptr, 0, Slot::ignored});
  if (!found || address + bytes > found->base + found->bytes) {
    if (!found && ignorable(address)) return;
    if (!found && job_->module->contains(address)) return;        // the extension's own constants
    Module library{};
    if (!found && find_library(reinterpret_cast<const void*>(address), library)) return;
    return outside(address, bytes, access, code);
  }
  if (!(access & as_bytes) && (bytes & (bytes - 1)) == 0 && address & (bytes - 1)) {
    Finding finding;
    finding.check = "misaligned";
    finding.what = verb(access);
    locate(finding, code);
    name(finding, *found, address, bytes);
    finding.type = std::to_string(bytes);
    add_finding(std::move(finding));
  }
  // A volatile access of global memory is never torn or left out: as good as an atomic one. In shared memory it is the
  // old way to do without __syncwarp(), which no longer holds.
  if (access & as_volatile && found->kind == Slot::global) access |= atomically;
  Shadow& shadow = shadows_[index];
  const std::uint8_t exact = address % 4 == 0 && bytes % 4 == 0 ? 2 : address % 2 == 0 && bytes % 2 == 0 ? 1 : 0;
  if (!shadow.full && (!shadow.cells || exact < shadow.shift)) refine(index, std::min(exact, shadow.shift));
  if (!(access & writing) || access & modifying) unwritten(*found, &shadow, address, bytes, access, code);
  if (access & atomically) {
    std::lock_guard lock(mutex);
    if (access & writing) atomics().try_emplace(reinterpret_cast<std::uintptr_t>(code), AtomicSite{access >> kind_shift, job_->launch->site.kernel});
    const Handovers::Moment now{block_, cursor.current, key::clock(state_.clock) - starts_.back().clock};
    checked.handovers.atomic(address, now, !(access & writing) || access & modifying || !(access & as_volatile), access & writing);
  }
  if (shadow.cells) look(index, address, bytes, access, code);
  remember(site, Slot{found->base, found->bytes, shadow.cells, shadow.shift, found->kind});
}

void Checker::fence() {
  const Critical critical(worker_);
  std::lock_guard lock(mutex);
  checked.handovers.fence({block_, cursor.current, key::clock(state_.clock) - starts_.back().clock});
}

void Checker::declared(std::uintptr_t variable, std::size_t bytes, const char* name) {
  locals_[next_local_++ % std::size(locals_)] = {variable, bytes, name};
}

void read_of_absent(unsigned mask, unsigned source, const char* what, int line) {
  Worker& worker = *this_worker;
  if (!worker.checker) return;
  const Critical critical(worker);
  Finding finding;
  finding.check = "warp_divergence";
  worker.checker->locate(finding, nullptr);
  finding.line = line;
  const unsigned lane = cursor.current % 32;
  const bool named = mask >> source & 1;
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  finding.warning = !named;      // a kernel may read such a value and never use it
  finding.message = "Lane " + std::to_string(lane) + " reads lane " + std::to_string(source) + " by " + what + ", " +
                    (named ? "which has returned or never existed, although the mask " + std::string(text) + " names it"
                           : "which the mask " + std::string(text) + " does not name") +
                    ": the value is undefined.";
  add_finding(std::move(finding));
}

void mark_local(void* variable, std::size_t bytes, const char* name) {
  if (Worker* worker = this_worker; worker && worker->checker) worker->checker->declared(reinterpret_cast<std::uintptr_t>(variable), bytes, name);
  auto* at = static_cast<char*>(variable);
  for (std::size_t i = 0; i < bytes; ++i) at[i] = reinterpret_cast<const char*>(&local_mark)[(reinterpret_cast<std::uintptr_t>(at) + i) % 4];
}

void check_access(const void* address, std::size_t bytes, unsigned access, const void* code) {
  this_worker->checker->access(reinterpret_cast<std::uintptr_t>(address), bytes, access, code);
}

void check_fence(int) { this_worker->checker->fence(); }

void settle_write() { this_worker->checker->settle(); }

void check_index(const char* file, int line, const char* type, std::int64_t index, const void* code) {
  const Critical critical(*this_worker);
  Finding finding;
  finding.check = "out_of_bounds";
  finding.what = "index";
  finding.type = type;
  finding.index = index;
  this_worker->checker->locate(finding, code);
  finding.file = file;
  finding.line = line;
  add_finding(std::move(finding));
}

void check_overflow(const char* file, int line, const char* what, const char* type, const void* code) {
  const Critical critical(*this_worker);
  Finding finding;
  finding.check = "int_overflow";
  finding.what = what;
  finding.type = type;
  this_worker->checker->locate(finding, code);
  finding.file = file;
  finding.line = line;
  add_finding(std::move(finding));
}

// ---- a launch ----

void begin_checked(Job& job) {
  std::vector<Region> regions;
  for (const Extent& extent : extents()) regions.push_back({extent.base, extent.bytes, Slot::global});
  {
    std::lock_guard lock(mutex);
    for (const auto& [base, bytes] : arguments) regions.push_back({base, bytes, Slot::global});
  }
  if (job.module) {
    const auto& variables = job.module->variables;
    for (std::size_t i = 0; i < variables.size(); ++i)
      regions.push_back({job.module->base + variables[i].offset, variables[i].bytes, Slot::global, -1, static_cast<int>(i)});
  }
  std::erase_if(regions, [](const Region& r) { return r.bytes == 0; });
  std::stable_sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.base < b.base; });
  // A tensor that came as an argument may be known as an allocation already, or share storage with another one.
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
}

namespace {

// What two workers know of one granule: whether blocks of one and of the other met in it.
struct Meeting2 {
  const Checker& here;
  const Checker& there;
  const Region& region;

  bool apart(std::uint64_t a, std::uint64_t b) const {
    const auto one = here.moment(a), two = there.moment(b);
    return !checked.handovers.ordered(one, two) && !checked.handovers.ordered(two, one);
  }

  Finding finding(std::uint64_t a, std::uint64_t b, std::uintptr_t address, std::size_t bytes, const char* what, const char* other_what) const {
    Finding made;
    made.check = "race";
    made.what = what;
    made.other_what = other_what;
    here.describe_other(made, a);
    made.kernel = here.launch().site.kernel;
    made.file = here.launch().site.file;
    made.code = made.other_code;
    made.block = made.other_block;
    made.thread = made.other_thread;
    made.in_thread = true;
    there.describe_other(made, b);
    here.name(made, region, address, bytes);
    return made;
  }
};

const char* verb_of(std::uint64_t k, bool write) { return !write ? "read" : k & key::atomic ? "atomic" : "write"; }

void compare(const Checker& here, const Checker& there, std::size_t index, const Region& region) {
  const Checker::Shadow &a = here.shadow(index), &b = there.shadow(index);
  if (!a.cells || !b.cells || !(a.wrote || b.wrote)) return;
  const Meeting2 both{here, there, region};
  const std::uint8_t shift = std::min(a.shift, b.shift);
  std::map<std::pair<unsigned, unsigned>, bool> told;       // pairs of sites
  for (std::size_t i = 0; i < (region.bytes + (std::size_t(1) << shift) - 1) >> shift; ++i) {
    const Cell &x = a.cells[i >> (a.shift - shift)], &y = b.cells[i >> (b.shift - shift)];
    const std::uintptr_t address = region.base + (i << shift);
    auto meet = [&](std::uint64_t p, bool p_writes, std::uint64_t q, bool q_writes, bool same_value) {
      if (!p || !q || (p & key::atomic && q & key::atomic) || !both.apart(p, q)) return;
      const bool first = told.emplace(std::pair(key::site(p), key::site(q)), same_value).second;
      if (!first && told.size() > 64) return;
      Finding finding = both.finding(p, q, address, std::size_t(1) << shift, verb_of(p, p_writes), verb_of(q, q_writes));
      finding.warning = same_value;
      add_finding(std::move(finding));
    };
    if (x.write && y.write) meet(x.write, true, y.write, true, x.value == y.value);
    if (x.write) {
      meet(x.write, true, y.read, false, false);
      meet(x.write, true, y.elsewhere, false, false);
    }
    if (y.write) {
      meet(x.read, false, y.write, true, false);
      meet(x.elsewhere, false, y.write, true, false);
    }
  }
}

}  // namespace

void end_checked(const std::vector<Checker*>& checkers) {
  for (std::size_t i = 0; i < checkers.size(); ++i)
    for (std::size_t k = i + 1; k < checkers.size(); ++k)
      for (std::size_t region = 0; region < checked.regions.size(); ++region) compare(*checkers[i], *checkers[k], region, checked.regions[region]);
  for (Checker* checker : checkers) checker->clear_cells();
}

void Checker::save_shared(std::vector<Cell>& into) {
  settle();
  into.clear();
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
  for (std::size_t i = 0; i < shared_.size() && at < from.size(); ++i) {
    Shadow& shadow = shadows_[checked.regions.size() + i];
    const Cell head = from[at++];
    const std::size_t count = static_cast<std::size_t>(head.read);
    const auto was = static_cast<std::uint8_t>(head.write);
    if (count && shadow.cells && was >= shadow.shift) {
      // Another block may have needed smaller pieces meanwhile.
      const unsigned each = 1u << (was - shadow.shift);
      const std::size_t now = (shared_[i].bytes >> shadow.shift) + 1;
      for (std::size_t k = 0; k < now; ++k) shadow.cells[k] = from[at + std::min(k / each, count - 1)];
    } else if (shadow.cells) {
      std::memset(shadow.cells, 0, ((shared_[i].bytes >> shadow.shift) + 1) * sizeof(Cell));
    }
    at += count;
  }
}

void Checker::blocks_met() {
  settle();
  for (std::size_t i = 0; i < checked.regions.size(); ++i)
    if (shadows_[i].cells) std::memset(shadows_[i].cells, 0, ((checked.regions[i].bytes >> shadows_[i].shift) + 1) * sizeof(Cell));
}

}  // namespace simt
