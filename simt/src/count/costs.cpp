// Finds the memory of an address and the cost of a request, and keeps the costliest request of each place to show.
#include <algorithm>
#include <string>

#include "count/parts.h"

namespace simt {

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
  for (const auto& variable : constants_)
    add(reinterpret_cast<const void*>(job_->module->base + variable.offset), variable.bytes, Space::constant);
  add(reinterpret_cast<const void*>(counting_->host_low), counting_->host_high - counting_->host_low, Space::ignored);
  add(&threadIdx, sizeof threadIdx, Space::ignored);
  add(&blockIdx, sizeof blockIdx, Space::ignored);
  add(&blockDim, sizeof blockDim, Space::ignored);
  add(&gridDim, sizeof gridDim, Space::ignored);
  add(&cursor, sizeof cursor, Space::ignored);
  std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) { return a.low < b.low; });
}

// low, size: the range around the address that belongs to the same space.
Space Counter::space_of(std::uint64_t address, std::uint64_t* low, std::uint64_t* size) const {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](std::uint64_t a, const Region& r) { return a < r.low; });
  const Region* const before = after == regions_.begin() ? nullptr : &*std::prev(after);
  if (before && address < before->high) {
    if (low) *low = before->low, *size = before->high - before->low;
    if (before->array >= 0) met_array_[static_cast<std::size_t>(before->array)] = true;
    return before->space;
  }
  if (low) *low = before ? before->high : 0, *size = (after == regions_.end() ? ~std::uint64_t(0) : after->low) - *low;
  return Space::global;
}

// Local memory interleaves the lanes' stacks, so that the same word of all lanes is in one line.
static void local_addresses(const Worker& worker, const Request& request, std::uint64_t* woven) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const std::uint64_t address = request.address[lane];
    std::uint64_t top = 0;
    const auto stacks = reinterpret_cast<std::uint64_t>(worker.stacks);
    if (worker.stacks && address >= stacks && address < stacks + worker.stacks_bytes) {
      const std::size_t each = worker.fibers.size() > 1
                                   ? static_cast<std::size_t>(worker.fibers[1]->low - worker.fibers[0]->low)
                                   : worker.stacks_bytes;
      const std::size_t i = (address - stacks) / each;
      if (i < worker.fibers.size()) top = reinterpret_cast<std::uint64_t>(worker.fibers[i]->top);
    } else {
      for (const auto& fiber : worker.fibers)
        if (address >= reinterpret_cast<std::uint64_t>(fiber->low) &&
            address < reinterpret_cast<std::uint64_t>(fiber->top))
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
  // A tensor's memory begins with a line on a GPU, and an argument says where it begins.
  const Launch& launch = *job_->launch;
  std::uint64_t nearest = 0;
  for (unsigned i = 0; i < launch.argument_count; ++i)
    if (const auto at = reinterpret_cast<std::uint64_t>(launch.arguments[i].pointer);
        at <= pattern.base && at > nearest)
      nearest = at;
  std::uint64_t origin = nearest;
  for (const Variable& variable : job_->module->variables)
    if (pattern.base - (job_->module->base + variable.offset) < variable.bytes)
      origin = job_->module->base + variable.offset;
  if (atomic)
    atomic_cost(request, origin, pattern.cost);
  else if (l1_cost(request, origin, pattern.cost))
    pattern.within = ~std::uint32_t(0);
}

void Counter::mark(Pattern& pattern, std::uint64_t address, Event event) {
  pattern.marked = address;
  const std::uint64_t first = address - pattern.base;
  for (unsigned i = 0; i < pattern.spans; ++i)
    touched_.mark(first + pattern.span[i].from, first + pattern.span[i].to, event != Event::write,
                  event != Event::read);
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
    // Choose the argument that begins last before the address, or the first argument.
    std::vector<std::string> names(1);
    for (const char* c = launch.site.parameters; c && *c; ++c) {
      if (*c == ',')
        names.emplace_back();
      else
        names.back() += *c;
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

}  // namespace simt
