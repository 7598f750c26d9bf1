// Checks the memory of an access: whether the kernel may use it, and whether it was ever written.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "check/parts.h"
#include "run/instruction.h"

namespace simt {

// Returns the name of the kernel's parameter that points to host memory below an address, or "".
static std::string pointing_at(const Launch& launch, std::uintptr_t address) {
  constexpr std::uintptr_t far = std::uintptr_t(1) << 34;  // a 32-bit index times 8 bytes
  std::uintptr_t least = far;
  std::string name;
  for (unsigned i = 0; i < launch.argument_count; ++i) {
    const auto pointer = reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer);
    const Place place = place_of(pointer);
    if (!pointer || (place.found && pointer - place.base <= place.bytes) || address - pointer >= least) continue;
    least = address - pointer;
    name = parameter_name(launch, i);
  }
  return name;
}

// Reports a kernel's write to constant memory, or its access of a variable that only the host can use.
bool Checker::refused(const Region& region, std::uintptr_t address, std::size_t bytes, unsigned access,
                      const void* code) {
  const Variable::Kind kind = job_->module->variables[static_cast<std::size_t>(region.variable)].kind;
  if (kind == Variable::device || (kind == Variable::constant && !(access & writing))) return false;
  Finding finding;
  finding.check = "illegal_address";
  finding.what = verb(access);
  finding.message = kind == Variable::constant ? "constant" : "variable";
  locate(finding, code);
  name(finding, region, address, bytes);
  add_finding(std::move(finding));
  return true;
}

// Reports an access outside all memory that the kernel may use, with the memory that was probably meant.
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
  // Shared memory first, and only addresses near it: its neighbours in the address space belong to the runtime.
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
      if (const Region* region = region_of(reinterpret_cast<std::uintptr_t>(launch.arguments[i].pointer), unused))
        consider(*region, far);
    for (const Region& region : checked.regions)
      if (region.kind == Slot::global) consider(region, region.variable >= 0 ? 4096 : 1 << 20);
  }
  if (address >= 65536 && (!nearest || nearest->kind == Slot::global)) {
    const Place place = meant_place(launch, address);
    if (place.found && place.freed &&
        (!nearest || distance > 1 << 20 || from_argument(launch, place, address) < distance)) {
      finding.check = "illegal_address";
      finding.message = "freed";
      return add_finding(std::move(finding));
    }
  }
  if (address < 65536 || !nearest) {
    finding.check = "illegal_address";
    finding.message = address < 65536 ? "null" : possible(address) ? "host" : "nowhere";
    if (finding.message == "host") finding.array = pointing_at(launch, address);
    if (!possible(address)) finding.index = static_cast<std::int64_t>(address);
    if (access & writing) stop_before_damage(nearest, finding, address, bytes);
    return add_finding(std::move(finding));
  }
  name(finding, *nearest, address, bytes);
  if (address + bytes > nearest->base + nearest->bytes && address < nearest->base + nearest->bytes)
    finding.message = "across";
  if (access & writing) stop_before_damage(nearest, finding, address, bytes);
  add_finding(std::move(finding));
}

// Checks an access to memory that a kernel has allocated, or to bytes next to it. Returns false for another address.
// Races are not looked for there: other threads get the same memory once it is freed.
bool Checker::in_heap(std::uintptr_t address, std::size_t bytes, unsigned access, const void* code) {
  const HeapPlace place = heap_place(address);
  if (!place.found) return false;
  const Region block{place.base, place.bytes, Slot::global, -3};
  const bool inside = address >= block.base && address + bytes <= block.base + block.bytes;
  if (inside && !place.freed) {
    if (!(access & as_bytes) && (bytes & (bytes - 1)) == 0 && address & (bytes - 1))
      misaligned(block, address, bytes, access, code);
    if (!(access & writing) || access & modifying) unwritten(block, nullptr, address, bytes, access, code);
    return true;
  }
  Finding finding;
  finding.check = place.freed ? "illegal_address" : "out_of_bounds";
  finding.what = verb(access);
  locate(finding, code);
  name(finding, block, address, bytes);
  if (place.freed)
    finding.message = "freed";
  else if (address < block.base + block.bytes && address + bytes > block.base + block.bytes)
    finding.message = "across";
  add_finding(std::move(finding));
  return true;
}

// Ends the launch instead of a write to memory of the process itself, which lies next to the static shared arrays, far
// behind them, and behind the fences of other arrays, which are narrow where the address space is limited. A pointer to
// host memory leads to the program's own data.
void Checker::stop_before_damage(const Region* nearest, const Finding& finding, std::uintptr_t address,
                                 std::size_t bytes) {
  const Module& module = *job_->module;
  const bool beside = nearest && nearest->kind == Slot::shared && nearest->array >= 0 &&
                      !(module.in_thread_block(address) && module.in_thread_block(address + bytes - 1));
  unsigned char resident;
  auto* const page = reinterpret_cast<void*>(address / 4096 * 4096);
  const bool far = finding.message == "host" && finding.array.empty() && mincore(page, 1, &resident) == 0;
  const bool behind = nearest && nearest->kind == Slot::global && nearest->variable < 0 && !is_allocated(address) &&
                      mincore(page, 1, &resident) == 0;
  if (!beside && !far && !behind) return;
  job_->cancelled = true;
  worker_.abort_pending = true;  // the kernel is left where the check ends
}

static bool is_poison(std::uintptr_t address, std::uint32_t poison) {
  return *reinterpret_cast<const std::uint8_t*>(address) == static_cast<std::uint8_t>(poison >> 8 * (address % 4));
}

// Returns whether a byte with the poison's value was never written. A single byte may have the value by chance, so the
// bytes around it must hold the poison too, in both of its values.
static bool looks_unwritten(const Region& region, std::uintptr_t address, std::uint32_t poison) {
  if (!is_poison(address, poison)) return false;
  int alike[2] = {};
  const std::uintptr_t from = std::max(address / 16 * 16, region.base),
                       to = std::min(address / 16 * 16 + 16, region.base + region.bytes);
  for (std::uintptr_t at = from; at < to; ++at) alike[at % 2] += is_poison(at, poison);
  return alike[0] >= 2 && alike[1] >= 2 && alike[0] + alike[1] >= 6;
}

// Returns whether these bytes are padding in the elements of an array to which an argument of the kernel points.
bool Checker::is_padding(const Region& region, std::uintptr_t address, std::size_t bytes) const {
  for (unsigned i = 0; i < launch().argument_count; ++i) {
    const Argument& argument = launch().arguments[i];
    const auto array = reinterpret_cast<std::uintptr_t>(argument.pointer);
    if (!argument.padding || array < region.base || array >= region.base + region.bytes) continue;
    const std::size_t size = argument.element, first = (address - array % size + size) % size;
    bool all = true;
    for (std::size_t k = 0; k < bytes; ++k) all = all && argument.padding[(first + k) % size];
    if (all) return true;
  }
  return false;
}

// Returns whether a copy or a launch is known to have written a byte of global memory: it may hold the poison's value.
bool Checker::is_written(const Region& region, const Shadow* shadow, std::uintptr_t address) const {
  if (!shadow) return false;
  if (shadow->cells && shadow->cells[(address - region.base) >> shadow->shift].write) return true;
  return is_noted(address);
}

// Returns whether a byte of global memory that holds the poison was not written, but another byte of its word was.
bool Checker::is_partly_written(const Region& region, const Shadow* shadow, std::uintptr_t address) const {
  if (!shadow || !shadow->cells || is_written(region, shadow, address)) return false;
  const std::uintptr_t word = address / 4 * 4, neighbour = address ^ 1;
  // Another worker's write in this launch is not known here. That a half has the poison's value by chance is unlikely.
  const bool alone = !state_.several || !shadow->wrote;
  if (!alone && (!is_poison(neighbour, global_poison) || is_written(region, shadow, neighbour))) return false;
  for (std::uintptr_t at = std::max(word, region.base); at < std::min(word + 4, region.base + region.bytes); ++at)
    if (is_written(region, shadow, at)) return true;
  return false;
}

// Returns whether an argument of the kernel points to numbers of at least this many bytes in a region.
bool Checker::is_typed(const Region& region, std::size_t bytes) const {
  for (unsigned i = 0; i < launch().argument_count; ++i) {
    const Argument& argument = launch().arguments[i];
    if (argument.scalar && argument.element >= bytes &&
        reinterpret_cast<std::uintptr_t>(argument.pointer) - region.base < region.bytes)
      return true;
  }
  return false;
}

// Reports a read of memory that was never written. For shared memory the cells record this; other memory still holds
// the poison.
void Checker::unwritten(const Region& region, const Shadow* shadow, std::uintptr_t address, std::size_t bytes,
                        unsigned access, const void* code) {
  std::size_t missing = 0, all = 0;
  std::uintptr_t first = 0, part = 0;  // part: the first word of which only a part was written
  auto count = [&](bool is_missing, std::uintptr_t at) {
    ++all;
    if (is_missing && missing++ == 0) first = at;
  };
  if (region.kind == Slot::shared) {
    if (!shadow->cells) return;
    const std::size_t from = (address - region.base) >> shadow->shift,
                      to = (address + bytes - 1 - region.base) >> shadow->shift;
    for (std::size_t i = from; i <= to; ++i)
      count(key::clock(shadow->cells[i].write) < key::clock(state_.began), region.base + (i << shadow->shift));
  } else {
    const std::uint32_t poison = region.kind == Slot::local ? local_poison : global_poison;
    if (bytes == 2) {
      std::uint16_t half;
      std::memcpy(&half, reinterpret_cast<const void*>(address), 2);
      count(half == static_cast<std::uint16_t>(poison) &&
                !(is_written(region, shadow, address) && is_written(region, shadow, address + 1)),
            address);
    }
    if (bytes == 1)
      // Another worker may have written the byte in this launch: two bytes seldom have the poison's values by chance.
      count((looks_unwritten(region, address, poison) && !is_written(region, shadow, address) &&
             (!shadow || !state_.several || is_poison(address ^ 1, poison))) ||
                (is_poison(address, poison) && is_partly_written(region, shadow, address)),
            address);
    for (std::size_t at = (address + 3) / 4 * 4; bytes >= 4 && at + 4 <= address + bytes; at += 4) {
      std::uint32_t word;
      std::memcpy(&word, reinterpret_cast<const void*>(at), 4);
      const bool poisoned = word == poison;
      if (!poisoned || !is_padding(region, at, sizeof word)) {  // padding that holds the poison counts as neither
        // Whether another block's update came first on this worker does not matter: each of them is reported.
        const bool update = access & modifying;
        bool written = true;
        for (std::size_t k = 0; poisoned && k < 4; ++k)
          written = written && (update ? shadow && is_noted(at + k) : is_written(region, shadow, at + k));
        count(poisoned && !written, at);
      }
      // A struct that is copied as bytes may have padding.
      for (std::uintptr_t k = at; missing == 0 && part == 0 && !(access & as_bytes) && k < at + 4; ++k)
        if (is_poison(k, poison) && !is_padding(region, k, 1) && is_partly_written(region, shadow, k)) part = at;
    }
  }
  if (missing == 0 && part == 0) return;
  if (missing == 0) first = part;
  Finding finding;
  finding.check = "uninitialized";
  finding.what = verb(access);
  // A struct that is copied whole may have padding, or a field that is not used.
  finding.warning = missing < all && !(missing == 0 && is_typed(region, bytes));
  locate(finding, code);
  name(finding, region, first, bytes);
  if (region.kind == Slot::local) name_local(finding, first);
  add_finding(std::move(finding));
}

bool Checker::ignorable(std::uintptr_t address, unsigned access) const {
  const auto own = reinterpret_cast<std::uintptr_t>(&threadIdx);       // the runtime's thread-local variables
  if (address - (own - 65536) < 131072) {
    for (const Region& region : shared_)
      if (address - region.base + 4096 < region.bytes + 8192) return false;
    return true;
  }
  // What a launch passes by reference is read there. A write would change the host's own variables, or what lies behind.
  if (access & writing || address - checked.host_low >= checked.host_bytes) return false;
  for (unsigned i = 0; i < launch().argument_count; ++i) {  // a pointer to a variable of the host, where it points
    const Argument& argument = launch().arguments[i];
    if (argument.pointer && address - reinterpret_cast<std::uintptr_t>(argument.pointer) < argument.element)
      return false;
  }
  return true;
}

// ---- local variables ----

// Adds the local variable at an address to a finding, and returns it; of 0 bytes if none is known.
Checker::LocalVariable Checker::name_local(Finding& finding, std::uintptr_t address) const {
  finding.index = 0;
  finding.elements = 0;
  for (unsigned i = 1; i <= std::size(locals_); ++i) {
    const LocalVariable& variable = locals_[(next_local_ - i) % std::size(locals_)];
    if (address - variable.base >= variable.bytes) continue;
    finding.array = variable.name;
    finding.index = static_cast<std::int64_t>((address - variable.base) / finding.element);
    finding.elements = variable.bytes / finding.element;
    return variable;
  }
  return {};
}

void Checker::declared(std::uintptr_t variable, std::size_t bytes, const char* name) {
  locals_[next_local_++ % std::size(locals_)] = {variable, bytes, name};
}

void mark_local(void* variable, std::size_t bytes, const char* name) {
  if (Checker* checker = checker_of(this_worker))
    checker->declared(reinterpret_cast<std::uintptr_t>(variable), bytes, name);
  auto* at = static_cast<char*>(variable);
  for (std::size_t i = 0; i < bytes; ++i)
    at[i] = reinterpret_cast<const char*>(&local_poison)[(reinterpret_cast<std::uintptr_t>(at) + i) % 4];
}

}  // namespace simt
