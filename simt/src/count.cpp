// Counts a launch: which blocks, which memory an address belongs to, the sums, and what Python gets of them.
#include "count.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "json.h"
#include "options.h"
#include "schedule.h"

namespace simt {

__thread Recorder recorder;

namespace {

constexpr double budget = 250e6;            // events of a launch that are counted unless the user says how many blocks
constexpr std::size_t words_per_block = 48 * 1024;
constexpr std::size_t fewest_words = 64, most_words = 512;
constexpr std::size_t stagger = 8;          // words between buffers: without them all would meet in the same cache sets

struct Asked {
  std::uint64_t limit = 0;
  bool skip = false;
} asked;
std::vector<std::string> launches;
std::string taken;

std::mutex flows_mutex;
std::shared_ptr<Flow> flow_of(const Module& module) {
  static auto* flows = new std::map<std::string, std::shared_ptr<Flow>>;
  std::lock_guard lock(flows_mutex);
  auto& flow = (*flows)[module.path];
  if (!flow) flow = std::make_shared<Flow>(module);
  return flow;
}

template <class T>
const T* symbol_of(const Module& module, const char* name) {
  void* const library = dlopen(module.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (!library) return nullptr;
  const void* const found = dlsym(library, name);
  dlclose(library);
  return static_cast<const T*>(found);
}
const ProbeFunction* probes_of(const Module& module) { return symbol_of<ProbeFunction>(module, "simt_probe_functions"); }

// Variables in constant memory; a comma follows each of the names that the extension lists.
std::vector<Variable> constants_of(const Module& module) {
  std::vector<Variable> constants;
  const char* const names = symbol_of<char>(module, "simt_constant_names");
  const std::string list = names ? std::string(",") + names : "";
  for (const Variable& variable : module.variables)
    if (list.find("," + variable.name + ",") != std::string::npos) constants.push_back(variable);
  return constants;
}

struct Text { const Module* module; std::uint64_t low, high; };
int find_text(dl_phdr_info* info, std::size_t, void* data) {
  auto& text = *static_cast<Text*>(data);
  if (info->dlpi_addr != text.module->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_X)) continue;
    text.low = info->dlpi_addr + header.p_vaddr;
    text.high = text.low + header.p_memsz;
  }
  return 1;
}

// What the call that returns to `code` calls; 0 where no call stands there.
std::uintptr_t callee(std::uintptr_t code) {
#if defined(__x86_64__)
  const auto* at = reinterpret_cast<const unsigned char*>(code);
  if (at[-5] != 0xe8) return 0;
  std::int32_t distance;
  std::memcpy(&distance, at - 4, 4);
  return code + static_cast<std::uintptr_t>(static_cast<std::intptr_t>(distance));
#else
  std::uint32_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(code - 4), 4);
  if (word >> 26 != 0x25) return 0;      // bl
  const std::int64_t distance = static_cast<std::int64_t>(static_cast<std::int32_t>(word << 6) >> 6) * 4;
  return code - 4 + static_cast<std::uintptr_t>(distance);
#endif
}

std::uint64_t scramble(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

}  // namespace

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
  lines += other.lines;
  arrivals += other.arrivals;
  arrived += other.arrived;
}

// ---- places in the code ----

// The return address whose low part is `where`, and what is called there.
const void* Counter::code_of(std::uint64_t where, SpotKind& kind) const {
  if (auto found = described_.find(where); found != described_.end()) {
    kind.event = found->second.event;
    kind.bytes = found->second.bytes;
    kind.kind = found->second.kind;
    return found->second.code;
  }
  constexpr std::uint64_t period = std::uint64_t(1) << (where_bits + 2);
  for (std::uint64_t code = (text_low_ & ~(period - 1)) + where * 4; code < text_high_; code += period)
    for (unsigned low = 0; low < 4; ++low) {
      if (code + low < text_low_ + 8 || code + low > text_high_) continue;
      const std::uintptr_t function = callee(code + low);
      for (const ProbeFunction* probe = probes_; function && probe->address; ++probe)
        if (reinterpret_cast<std::uintptr_t>(probe->address) == function) {
          kind.event = probe->event;
          kind.bytes = probe->bytes;
          return reinterpret_cast<const void*>(code + low);
        }
    }
  return nullptr;
}

Spot& Counter::new_spot(std::uint64_t where) {
  spots_.emplace_back();
  Spot& spot = spots_.back();
  index_[where] = &spot;
  const auto code = reinterpret_cast<std::uintptr_t>(code_of(where, spot));
  spot.offset = code ? code - module_->base : 0;
  spot.function = flow_->function_at(spot.offset);
  spot.increments = flow_->increments(spot.offset);
  std::lock_guard lock(flow_->mutex);
  if (spot.event == Event::block || flow_->begins(spot.offset)) {
    spot.block = flow_->block_at(spot.offset);
    spot.entry = flow_->enters(spot.block);
    spot.open = flow_->open(spot.block);
    spot.branches = flow_->branches(spot.block);
    spot.instructions = flow_->instructions(spot.block);
    spot.flops = flow_->flops(spot.block);
  }
  return spot;
}

void Counter::describe(const void* code, Event event, unsigned bytes, int kind) {
  const std::uint64_t where = reinterpret_cast<std::uintptr_t>(code) >> 2 & ((std::uint64_t(1) << where_bits) - 1);
  if (index_[where]) return;
  described_.try_emplace(where, Described{code, event, static_cast<std::uint8_t>(bytes), kind});
}

std::uint64_t Counter::together(Together kind, const char* what, int line) {
  auto& known = met_[static_cast<unsigned>(line) % std::size(met_)];
  if (known.what == what && known.line == line && known.event) return known.event;
  auto [found, fresh] = together_of_.try_emplace({what, line}, static_cast<std::uint32_t>(together_.size()));
  if (fresh) {
    spots_.emplace_back();
    Spot& spot = spots_.back();
    spot.event = Event::together;
    spot.together = kind;
    spot.what = what;
    spot.line = line;
    together_.push_back(&spot);
  }
  known = {what, line, static_cast<std::uint64_t>(found->second) << address_bits | static_cast<std::uint64_t>(kind)};
  return known.event;
}

// ---- memory ----

void Counter::find_regions() {
  regions_.clear();
  auto add = [&](const void* from, std::uint64_t bytes, Space space, int array = -1) {
    const auto low = reinterpret_cast<std::uint64_t>(from);
    if (bytes) regions_.push_back({low, low + bytes, space, array});
  };
  met_array_.resize(job_->arrays.size());
  for (std::size_t i = 0; i < job_->arrays.size(); ++i)
    add(job_->module->address_of(job_->arrays[i]), job_->arrays[i].bytes, Space::shared, static_cast<int>(i));
  if (job_->launch->config.shared > 0)
    add(worker_.dynamic_base, static_cast<std::uint64_t>(worker_.dynamic_shared - worker_.dynamic_base), Space::shared);
  if (worker_.stacks) add(worker_.stacks, worker_.stacks_bytes, Space::local);
  stacks_known_ = worker_.stacks;
  fibers_known_ = worker_.fibers.size();
  for (const auto& fiber : worker_.fibers)
    if (!worker_.stacks || fiber->low < worker_.stacks || fiber->low >= worker_.stacks + worker_.stacks_bytes)
      add(fiber->low, static_cast<std::uint64_t>(fiber->top - fiber->low), Space::local);
  for (const auto& variable : constants_) add(reinterpret_cast<const void*>(job_->module->base + variable.offset), variable.bytes, Space::constant);
  add(reinterpret_cast<const void*>(counting_->host_low), counting_->host_high - counting_->host_low, Space::ignored);
  add(&threadIdx, sizeof threadIdx, Space::ignored);
  add(&blockIdx, sizeof blockIdx, Space::ignored);
  add(&blockDim, sizeof blockDim, Space::ignored);
  add(&gridDim, sizeof gridDim, Space::ignored);
  add(&cursor, sizeof cursor, Space::ignored);
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.low < b.low; });
}

// low, size: the stretch around the address that is of the same space.
Space Counter::space_of(std::uint64_t address, std::uint64_t* low, std::uint64_t* size) const {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address, [](std::uint64_t a, const Region& r) { return a < r.low; });
  const Region* const before = after == regions_.begin() ? nullptr : &*std::prev(after);
  if (before && address < before->high) {
    if (low) *low = before->low, *size = before->high - before->low;
    if (before->array >= 0) met_array_[static_cast<std::size_t>(before->array)] = true;
    return before->space;
  }
  if (low) *low = before ? before->high : 0, *size = (after == regions_.end() ? ~std::uint64_t(0) : after->low) - *low;
  return Space::global;
}

// Local memory is laid out so that the same word of all lanes lies in one line: as if each lane's stack were woven in.
void local_addresses(const Worker& worker, const Request& request, std::uint64_t* woven) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const std::uint64_t address = request.address[lane];
    std::uint64_t top = 0;
    const auto stacks = reinterpret_cast<std::uint64_t>(worker.stacks);
    if (worker.stacks && address >= stacks && address < stacks + worker.stacks_bytes) {
      const std::size_t each = worker.fibers.size() > 1 ? static_cast<std::size_t>(worker.fibers[1]->low - worker.fibers[0]->low) : worker.stacks_bytes;
      const std::size_t i = (address - stacks) / each;
      if (i < worker.fibers.size()) top = reinterpret_cast<std::uint64_t>(worker.fibers[i]->top);
    } else {
      for (const auto& fiber : worker.fibers)
        if (address >= reinterpret_cast<std::uint64_t>(fiber->low) && address < reinterpret_cast<std::uint64_t>(fiber->top))
          top = reinterpret_cast<std::uint64_t>(fiber->top);
    }
    const std::uint64_t depth = top - address;
    woven[lane] = (std::uint64_t(1) << 40) - (depth + 3) / 4 * 128 + lane * 4 + (address & 3);
  }
}

void Counter::cost_of(Pattern& pattern, const Spot& spot, const Request& request) {
  const bool atomic = spot.event == Event::atomic;
  pattern.cost = {};
  pattern.spans = 0;
  pattern.shift = 0;
  std::fill(pattern.lines, pattern.lines + 4, 0u);
  pattern.marks = false;
  Space space = pattern.space;
  if (space == Space::local) {
    std::uint64_t woven[32];
    local_addresses(worker_, request, woven);
    const unsigned piece = std::min(request.bytes, 4u);
    for (unsigned at = 0; at < request.bytes; at += 4) {
      Cost word{};
      Span spans[32];
      global_cost({woven, request.lanes, piece}, word, spans);
      pattern.cost.sectors += word.sectors;
      pattern.cost.ideal_sectors += word.ideal_sectors;
      pattern.cost.used += word.used;
    }
    return;
  }
  pattern.base = request.address[__builtin_ctz(request.lanes)];
  pattern.spans = global_cost(request, pattern.cost, pattern.span);
  if (space == Space::shared) {
    pattern.cost.sectors = pattern.cost.ideal_sectors = 0;
    shared_cost(request, pattern.cost, atomic && !spot.increments);
  }
  pattern.marks = space == Space::global;
  if (!pattern.marks) return;
  // Memory of tensors is aligned to 64 bytes here, but to a whole line at least on a GPU: an argument says where it begins.
  const Launch& launch = *job_->launch;
  std::uint64_t nearest = 0;
  for (unsigned i = 0; i < launch.argument_count; ++i)
    if (const auto at = reinterpret_cast<std::uint64_t>(launch.arguments[i].pointer); at <= pattern.base && at > nearest) nearest = at;
  if (atomic) {
    std::uint64_t origin = nearest;
    for (const Variable& variable : job_->module->variables)
      if (pattern.base - (job_->module->base + variable.offset) < variable.bytes) origin = job_->module->base + variable.offset;
    atomic_cost(request, origin, pattern.cost);
  }
  pattern.shift = nearest & 64;
  const std::uint64_t now = (pattern.base - pattern.shift) / 32 % 4;
  for (std::uint64_t i = 0; i < 4; ++i) pattern.lines[i] = lines_of(pattern.span, pattern.spans, 128 - pattern.shift + (i - now) % 4 * 32);
}

void Counter::mark(Pattern& pattern, std::uint64_t address, Event event) {
  pattern.marked = address;
  const std::uint64_t first = address - pattern.base;
  for (unsigned i = 0; i < pattern.spans; ++i)
    touched_.mark(first + pattern.span[i].from, first + pattern.span[i].to, event != Event::write, event != Event::read);
}

// ---- examples ----

bool Example::better(const Example& other) const {
  const int more = __builtin_popcount(lanes), fewer = __builtin_popcount(other.lanes);
  return excess() != other.excess() ? excess() > other.excess() : more != fewer ? more > fewer : order < other.order;
}

void Counter::keep(Spot& spot, const Pattern& pattern, const std::uint64_t* address) {
  if (pattern.space != Space::global && pattern.space != Space::shared) return;
  const Launch& launch = *job_->launch;
  Example now;
  now.lanes = pattern.lanes;
  now.space = pattern.space;
  now.cost = pattern.cost;
  const dim3 &grid = launch.config.grid, &at = block_->index;
  now.block = at.x + std::uint64_t(grid.x) * (at.y + std::uint64_t(grid.y) * at.z);
  now.order = job_->schedule == 1 ? job_->blocks - now.block : now.block;
  if (spot.example && !now.better(*spot.example)) return;
  now.warp = warp_;
  std::copy(address, address + 32, now.address);
  const std::uint64_t first = address[__builtin_ctz(pattern.lanes)];
  now.base = pattern.low;
  if (now.space == Space::shared) {
    for (const SharedArray& array : job_->arrays)
      if (reinterpret_cast<std::uint64_t>(job_->module->address_of(array)) == pattern.low) now.name = array.name;
  } else {
    now.base = 0;
    for (const Variable& variable : job_->module->variables) {
      const std::uint64_t low = job_->module->base + variable.offset;
      if (first - low >= variable.bytes) continue;
      now.base = low;
      now.name = variable.name;
    }
    // Of the arguments the one that begins last before the address; before the first of them, that one.
    std::vector<std::string> names(1);
    for (const char* c = launch.site.parameters; c && *c; ++c) {
      if (*c == ',') names.emplace_back();
      else names.back() += *c;
    }
    const bool variable = !now.name.empty();
    for (unsigned i = 0; i < launch.argument_count && !variable; ++i) {
      const auto low = reinterpret_cast<std::uint64_t>(launch.arguments[i].pointer);
      const bool nearer = !now.base || (low <= first ? low > now.base || now.base > first : low < now.base);
      if (!low || !nearer) continue;
      now.base = low;
      now.element = launch.arguments[i].element;
      now.name = i < names.size() ? names[i] : "";
    }
  }
  spot.example = std::make_unique<Example>(std::move(now));
}

// ---- sums ----

void Counter::flush(Spot& spot, Pattern& pattern) {
  const std::uint64_t count = pattern.times[0] + pattern.times[1] + pattern.times[2] + pattern.times[3];
  if (!count) return;
  const double times = static_cast<double>(count), lanes = __builtin_popcount(pattern.lanes), weighted = times * flushed_weight_;
  const Cost& cost = pattern.cost;
  Tally& tally = spot.tally[static_cast<std::size_t>(pattern.space)];
  tally.executions += weighted;
  tally.lanes += weighted * lanes;
  tally.bytes += weighted * lanes * spot.bytes;
  tally.used += weighted * cost.used;
  tally.sectors += weighted * cost.sectors;
  for (unsigned i = 0; i < 4; ++i) tally.lines += static_cast<double>(std::exchange(pattern.times[i], 0) * pattern.lines[i]) * flushed_weight_;
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

// ---- a launch ----

void Counter::begin(Job& job) {
  job_ = &job;
  counting_ = job.counting;
  if (!module_) {
    module_ = job.module;
    flow_ = counting_->flow;
    probes_ = probes_of(*module_);
    constants_ = constants_of(*module_);
    index_.assign(std::size_t(1) << where_bits, nullptr);
    Text text{module_, 0, 0};
    dl_iterate_phdr(find_text, &text);
    text_low_ = text.low;
    text_high_ = text.high;
  }
  met_array_.clear();
  find_regions();
  const dim3& shape = job.launch->config.block;
  threads_ = shape.x * shape.y * shape.z;
  at_.resize(threads_);
  stop_.resize(threads_);
  limit_.resize(threads_);
  larger_.resize(threads_);
  scratch_.resize(most_words);
  ignored_.resize(threads_);
  ignored_limit_.assign(threads_, scratch_.data() + scratch_.size());
  warps_.resize((threads_ + 31) / 32);
  stratum_end_ = 0;
  weight_ = flushed_weight_ = 1;
  has_before_ = false;
  sampled_ = events_ = 0;
  std::fill(by_block_, by_block_ + 2, 0.0);
  std::fill(now_, now_ + totals, 0.0);
  std::fill(sum_, sum_ + totals, 0.0);
  std::fill(variance_, variance_ + totals, 0.0);
  all_touched_.clear();
}

// The next stratum begins where the last one ended; the first and the last block of a grid are strata of their own.
bool Counter::wants(std::uint64_t position, std::uint64_t to) {
  if (position >= stratum_end_ || position < stratum_) {
    const double counted = static_cast<double>(counting_->counted.load(std::memory_order_relaxed));
    const double blocks = static_cast<double>(counting_->blocks);
    double each = 1;
    if (counting_->limit) each = std::ceil(blocks / static_cast<double>(counting_->limit));
    else if (counted > 0) each = std::max(1.0, std::ceil(static_cast<double>(counting_->events.load(std::memory_order_relaxed)) / counted * blocks / budget));
    stratum_ = position;
    stratum_end_ = std::min(to, position + static_cast<std::uint64_t>(each));
    if (position == 0) stratum_end_ = 1;
    if (stratum_end_ == counting_->blocks && stratum_end_ - position > 1) --stratum_end_;
    chosen_ = position + scramble(position) % (stratum_end_ - position);
  }
  if (position != chosen_) return false;
  weight_ = static_cast<double>(stratum_end_ - stratum_);
  return true;
}

bool Counter::block_starts(std::uint64_t position, std::uint64_t to) {
  counted_ = wants(position, to);
  if (counted_) start();
  else recorder = {scratch_.data(), scratch_.data() + scratch_.size(), scratch_.data(), 0, scratch_.size(), ignored_.data(), ignored_limit_.data()};
  return counted_ || !counting_->skip;
}

void Counter::start() {
  const std::size_t capacity = std::clamp(words_per_block / threads_ / 8 * 8, fewest_words, most_words);
  if (weight_ != flushed_weight_) {
    flush_all();
    std::fill(now_, now_ + totals, 0.0);
    flushed_weight_ = weight_;
    has_before_ = false;
  }
  const std::size_t stride = capacity + stagger;
  if (buffer_.size() < stride * threads_) buffer_.resize(stride * threads_);
  recorder = {nullptr, nullptr, buffer_.data(), stride, capacity, stop_.data(), limit_.data()};
  for (unsigned t = 0; t < threads_; ++t) {
    at_[t] = stop_[t] = buffer_.data() + t * stride;
    limit_[t] = at_[t] + capacity;
  }
  for (unsigned w = 0; w < warps_.size(); ++w) {
    warps_[w].paths.clear();
    warps_[w].paths.emplace_back();
    const unsigned live = std::min(32u, threads_ - w * 32);
    warps_[w].paths[0].lanes = live == 32 ? ~0u : (1u << live) - 1;
  }
  rounds_ = 0;
  touched_.clear();
  for (Spot& spot : spots_)
    for (auto& pattern : spot.pattern)
      if (pattern) pattern->marked = 0;
  if (fibers_known_ != worker_.fibers.size() && !worker_.stacks) find_regions();
}

// Of blocks after which the machine code doesn't tell what follows: before lanes part there, all that is known now counts.
void Counter::learn_edges() {
  for (unsigned t = 0; t < threads_; ++t) {
    const Spot* before = nullptr;
    for (const std::uint64_t* at = at_[t]; at != stop_[t]; ++at) {
      const std::uint64_t address = *at & address_mask;
      if (address != 0 && address < first_address) continue;
      const Spot* const here = &spot_of(*at);
      if (here->block < 0) continue;
      if (before && before->function == here->function && before->open) {
        std::lock_guard lock(flow_->mutex);
        flow_->add(before->block, here->block);
      }
      before = here;
    }
  }
}

// Replays what there is; `all`: to the last event, also where lanes would wait for others.
void Counter::consume(Block& block, bool all) {
  if (stacks_known_ != worker_.stacks) find_regions();      // they are made when a thread waits for the first time
  for (unsigned t = 0; t < threads_; ++t) events_ += static_cast<std::uint64_t>(stop_[t] - at_[t]);
  if (flow_->any_open()) learn_edges();
  for (unsigned w = 0; w < warps_.size(); ++w) {
    replay(block, w);
    if (!all) continue;
    auto left = [&] {
      for (unsigned t = w * 32; t < std::min(threads_, w * 32 + 32); ++t)
        if (at_[t] != stop_[t]) return true;
      return false;
    };
    while (left()) {
      force(warps_[w], w * 32);
      replay(block, w);
    }
  }
  for (unsigned t = 0; t < threads_; ++t) {
    std::uint64_t* const base = recorder.base + t * recorder.stride;
    const auto left = static_cast<std::size_t>(stop_[t] - at_[t]);
    events_ -= left;
    const bool fits = larger_[t].empty() || left <= recorder.capacity / 2;
    std::uint64_t* const to = fits ? base : larger_[t].data();
    if (left && at_[t] != to) std::memmove(to, at_[t], left * sizeof *to);
    if (fits && !larger_[t].empty()) {
      larger_words_ -= larger_[t].size();
      std::vector<std::uint64_t>().swap(larger_[t]);
      limit_[t] = base + recorder.capacity;
    }
    at_[t] = to;
    stop_[t] = to + left;
  }
}

// The thread's buffer becomes twice as large.
void Counter::enlarge(unsigned thread) {
  const auto left = static_cast<std::size_t>(stop_[thread] - at_[thread]);
  std::vector<std::uint64_t> larger(2 * std::max(recorder.capacity, larger_[thread].size()));
  std::copy(at_[thread], stop_[thread], larger.begin());
  larger_words_ += larger.size() - larger_[thread].size();
  larger_[thread] = std::move(larger);
  at_[thread] = larger_[thread].data();
  stop_[thread] = at_[thread] + left;
  limit_[thread] = at_[thread] + larger_[thread].size();
}

// A thread whose events its warp has not come to yet is held back, so that its buffer stays small; unless nobody else can
// run, or for so long that the others may be waiting for it.
bool Counter::make_room(Block& block) {
  if (!counted_) return false;
  std::vector<unsigned> full;
  for (unsigned t = 0; t < block.count; ++t)
    if (block.wait[t] == Wait::full) full.push_back(t);
  if (full.empty()) return false;
  constexpr unsigned patience = 64;
  constexpr std::size_t most = std::size_t(1) << 26;      // words
  consume(block, larger_words_ > most);
  std::vector<unsigned> held;
  for (unsigned t : full) {
    if (stop_[t] - at_[t] <= (limit_[t] - at_[t]) / 2) block.make_ready(t);
    else held.push_back(t);
  }
  if (held.size() == full.size() || (!held.empty() && ++rounds_ > patience)) {
    for (unsigned t : held) {
      enlarge(t);
      block.make_ready(t);
    }
    rounds_ = 0;
  }
  return true;
}

void Counter::note_touched() {
  const double sectors[] = {static_cast<double>(touched_.read().sectors), static_cast<double>(touched_.written().sectors)};
  now_[block_unique_read] += sectors[0];
  now_[block_unique_written] += sectors[1];
  for (unsigned i = 0; i < 2; ++i) by_block_[i] += sectors[i];
  all_touched_.merge(touched_);
  touched_.clear();
}

void Counter::block_parks(Block& block) {
  if (!counted_) return;
  consume(block, true);
  note_touched();
}

void Counter::block_resumes() {
  counted_ = true;
  start();
}

void Counter::block_ends(Block& block) {
  if (!counted_) return;
  cursor.current = nobody;      // the last thread is gone, too
  consume(block, true);
  note_touched();
  ++sampled_;
  counting_->events.fetch_add(events_, std::memory_order_relaxed);
  counting_->counted.fetch_add(1, std::memory_order_relaxed);
  events_ = 0;
  if (flushed_weight_ == 1) return;
  // The variance within a stratum, from its neighbour: Wolter, "Introduction to Variance Estimation", on one unit a stratum.
  flush_all();
  for (unsigned i = 0; i < totals; ++i) {
    const double difference = now_[i] - before_[i];
    if (has_before_) variance_[i] += flushed_weight_ * (flushed_weight_ - 1) * difference * difference / 2;
    before_[i] = now_[i];
    now_[i] = 0;
  }
  has_before_ = true;
}

void Counter::end() {
  recorder = {};
  flush_all();
  std::lock_guard lock(counting_->mutex);
  for (Spot& spot : spots_) {
    Counting::Found* found = nullptr;
    for (std::size_t s = 0; s <= spaces; ++s) {
      if (spot.tally[s].executions == 0 && spot.tally[s].diverged == 0 && spot.tally[s].arrivals == 0) continue;
      if (!found) found = spot.event == Event::together ? &counting_->met[{spot.what ? spot.what : "", spot.line}] : &counting_->code[spot.offset];
      found->spot = spot;
      found->tally[s].add(spot.tally[s]);
      spot.tally[s] = {};
    }
    if (found && spot.example && (!found->example || spot.example->better(*found->example))) found->example = std::move(spot.example);
    spot.example.reset();
    for (auto& pattern : spot.pattern)
      if (pattern) pattern->present = 0;
    spot.lanes = 0;
  }
  for (unsigned i = 0; i < totals; ++i) {
    counting_->sum[i] += sum_[i];
    counting_->variance[i] += variance_[i];
  }
  counting_->met_array.resize(met_array_.size());
  for (std::size_t i = 0; i < met_array_.size(); ++i) counting_->met_array[i] = counting_->met_array[i] || met_array_[i];
  counting_->sampled += sampled_;
  for (unsigned i = 0; i < 2; ++i) counting_->by_block[i] += by_block_[i];
  counting_->touched.merge(all_touched_);
  all_touched_.clear();
}

// ---- hooks of launches ----

void begin_counting(Job& job) {
  if (!job.module || !probes_of(*job.module)) return;
  job.counting = new Counting;
  Counting& counting = *job.counting;
  counting.blocks = job.blocks;
  counting.limit = job.launch->cooperative ? 0 : asked.limit;
  counting.skip = asked.skip;
  counting.module = job.module;
  counting.flow = flow_of(*job.module);
  if (counting.limit && counting.limit < job.blocks) {
    const std::uint64_t each = (job.blocks + counting.limit - 1) / counting.limit;
    job.chunk = std::max<std::uint64_t>(job.chunk / each, 1) * each;
  }
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &bytes);
    pthread_attr_destroy(&attributes);
  }
  counting.host_low = reinterpret_cast<std::uint64_t>(low);
  counting.host_high = counting.host_low + bytes;
}

namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, value == std::floor(value) && std::fabs(value) < 1e15 ? "%.0f" : "%.17g", value);
  return text;
}

std::string listed(const double* values, std::size_t n) {
  std::string out = "[";
  for (std::size_t i = 0; i < n; ++i) out += (i ? "," : "") + number(values[i]);
  return out + "]";
}

std::string written(const Example& e) {
  std::string out = "{\"space\":" + std::to_string(static_cast<int>(e.space)) + ",\"name\":" + quoted(e.name) + ",\"element\":" + std::to_string(e.element) +
                    ",\"start\":" + std::to_string(e.space == Space::global ? e.base % 32 : 0) + ",\"block\":" + std::to_string(e.block) + ",\"warp\":" + std::to_string(e.warp) +
                    ",\"cost\":[" + std::to_string(e.cost.sectors) + "," + std::to_string(e.cost.ideal_sectors) + "," + std::to_string(e.cost.wavefronts) + "," +
                    std::to_string(e.cost.ideal_wavefronts) + "],\"addresses\":[";
  for (unsigned lane = 0; lane < 32; ++lane)
    out += (lane ? "," : "") + (e.lanes >> lane & 1 ? std::to_string(static_cast<std::int64_t>(e.address[lane] - e.base)) : "null");
  return out + "]}";
}

std::string written(const Counting::Found& found) {
  const SpotKind& spot = found.spot;
  std::string out = "{\"offset\":" + std::to_string(spot.offset) + ",\"line\":" + std::to_string(spot.line) + ",\"what\":" +
                    quoted(spot.what ? spot.what : "") + ",\"event\":" + std::to_string(static_cast<int>(spot.event)) + ",\"together\":" +
                    std::to_string(static_cast<int>(spot.together)) + ",\"bytes\":" + std::to_string(spot.bytes) + ",\"atomic\":" +
                    std::to_string(spot.kind) + ",\"branches\":" + std::to_string(spot.branches) + ",\"tally\":{";
  bool first = true;
  for (std::size_t s = 0; s <= spaces; ++s) {
    const Tally& t = found.tally[s];
    if (t.executions == 0 && t.diverged == 0 && t.arrivals == 0) continue;
    const double values[] = {t.executions, t.lanes, t.bytes, t.used, t.sectors, t.ideal_sectors, t.wavefronts, t.ideal_wavefronts, t.distinct, t.deepest, t.diverged, t.lines, t.arrivals, t.arrived};
    out += std::string(first ? "" : ",") + "\"" + std::to_string(s) + "\":" + listed(values, std::size(values));
    first = false;
  }
  return out + "}" + (found.example ? ",\"example\":" + written(*found.example) : "") + "}";
}

}  // namespace

void end_counting(Job& job) {
  const std::unique_ptr<Counting> counting(job.counting);
  job.counting = nullptr;
  const Launch& launch = *job.launch;
  double deviation[totals];
  for (unsigned i = 0; i < totals; ++i) deviation[i] = std::sqrt(counting->variance[i]);
  // Arrays of the kernel, and of other functions where they were used: which instance of a template runs isn't always known.
  std::size_t fixed = 0;
  const std::string own = base_name(launch.site.kernel);
  for (std::size_t i = 0; i < job.arrays.size(); ++i) {
    const SharedArray& array = job.arrays[i];
    const bool certain = array.owner == own && launch.function && array.code == reinterpret_cast<std::uintptr_t>(launch.function);
    if (certain || (i < counting->met_array.size() && counting->met_array[i])) fixed += array.bytes;
  }
  const TouchedBytes::Count read = counting->touched.read(), wrote = counting->touched.written();
  const double unique[] = {static_cast<double>(read.bytes), static_cast<double>(wrote.bytes), static_cast<double>(read.sectors), static_cast<double>(wrote.sectors),
                           static_cast<double>(read.granules), static_cast<double>(wrote.granules), counting->by_block[0], counting->by_block[1]};
  std::string out = "{\"kernel\":" + quoted(launch.site.kernel ? launch.site.kernel : "") + ",\"file\":" + quoted(launch.site.file ? launch.site.file : "") +
                    ",\"line\":" + std::to_string(launch.site.line) + ",\"defined\":" + std::to_string(launch.site.defined) + ",\"module\":" +
                    quoted(counting->module->path) + ",\"grid\":" + three(launch.config.grid) + ",\"block\":" + three(launch.config.block) +
                    ",\"dynamic_shared\":" + std::to_string(launch.config.shared) + ",\"static_shared\":" + std::to_string(fixed) + ",\"cooperative\":" +
                    std::to_string(launch.cooperative) + ",\"sampled\":" + std::to_string(counting->sampled) + ",\"complete\":" +
                    std::to_string(!job.cancelled) + ",\"unique_full\":" + std::to_string(counting->touched.full()) + ",\"unique\":" +
                    listed(unique, std::size(unique)) + ",\"sum\":" + listed(counting->sum, totals) + ",\"deviation\":" + listed(deviation, totals) + ",\"spots\":[";
  bool first = true;
  for (const auto& [offset, found] : counting->code) {
    out += (first ? "" : ",") + written(found);
    first = false;
  }
  for (const auto& [key, found] : counting->met) {
    out += (first ? "" : ",") + written(found);
    first = false;
  }
  launches.push_back(out + "]}");
}

extern "C" void simt_count_begin(std::uint64_t limit, int skip) {
  asked = {limit, skip != 0};
  launches.clear();
}

extern "C" const char* simt_count_take() {
  taken = "[";
  for (std::size_t i = 0; i < launches.size(); ++i) taken += (i ? ",\n" : "") + launches[i];
  taken += "]";
  launches.clear();
  return taken.c_str();
}

// ---- what probes ask for ----

extern "C" void simt_event_without_room(std::uint64_t event) {
  if (!recorder.base) return;               // the host's own code
  if (!recorder.stride) recorder.next = recorder.base;
  else wait_for(Wait::full, 0);
  *recorder.next++ = event;
}

extern "C" void simt_event_site(const void* code, Event event, unsigned bytes, int kind) {
  if (!recorder.base) return;
  const Critical critical(*this_worker);
  this_worker->counter->describe(code, event, bytes, kind);
}

void record_together(Worker& worker, Together kind, const char* what, int line) {
  std::uint64_t event;
  {
    const Critical critical(worker);
    event = worker.counter->together(kind, what, line);
  }
  if (recorder.next == recorder.end) return simt_event_without_room(event);
  *recorder.next++ = event;
}

}  // namespace simt
