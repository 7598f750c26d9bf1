// Allocates device memory, keeps a registry of it for fault messages, and fences it with inaccessible pages.
#include "run/memory.h"

#include <simt/host.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "run/monitor.h"
#include "run/options.h"

namespace simt {
namespace {

constexpr std::size_t page = 4096;

// Wide enough for a row or plane past the end; if address space is not limited, for any 32-bit index.
std::size_t fence_bytes() {
  static const std::size_t bytes = [] {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? std::size_t(1) << 33 : std::size_t(1) << 20;
  }();
  return bytes;
}

// Of the address handed out: a float4 must fit. cudaMalloc's suits textures (512), which a program may rely on.
std::size_t alignment() { return options().program ? 512 : 16; }
constexpr std::size_t remembered = 256;     // freed allocations kept for messages

// Which bytes of a block were written.
struct Written {
  std::vector<bool> bytes;
  std::uint8_t shift = word_shift;  // of the smallest pieces
};

struct Block {
  std::size_t bytes;    // requested
  char* map;            // start of the mapping, null for plain memory
  std::size_t mapped;   // its length
  char* data;           // accessible part
  std::size_t room;     // length of the accessible part
  std::uint64_t serial = 0;
  std::uintptr_t code = 0;   // where a program allocated it
  bool closed = false;       // the host may not touch it, except in copies
  int copies = 0;            // that are touching it now
  bool input = false;        // in a monitor's memory, at `offset`
  bool written = false;      // an input that was written to
  std::uint64_t offset = 0;
  std::uintptr_t base = 0;       // the address handed out
  std::shared_ptr<Written> written_bytes = {};  // of a closed block, from its first write
};

std::mutex mutex;
std::map<std::uintptr_t, Block>& live() {
  static auto* blocks = new std::map<std::uintptr_t, Block>;   // never destroyed: tensors die late
  return *blocks;
}
struct Freed {
  std::uintptr_t base;
  std::size_t bytes;
};
Freed freed[remembered];
std::size_t freed_count = 0;
Guard guard = Guard::none;
std::uint64_t serial = 0;
std::uint64_t command_serial = 0;      // when the monitor's newest command began
int inputs = -1;
constexpr std::size_t most_open = 4096;
std::vector<std::uintptr_t>& open_pages() {
  static auto* pages = new std::vector<std::uintptr_t>;
  return *pages;
}

// Memory of the host that kernels may use: address -> bytes.
std::map<std::uintptr_t, std::size_t>& registered() {
  static auto* blocks = new std::map<std::uintptr_t, std::size_t>;
  return *blocks;
}

std::size_t closed_blocks = 0;
int kernels_running = 0;  // host threads that have opened all blocks

// Opens or closes a closed block, as the kernels and copies of all host threads need it.
void protect(const Block& block) {
  const bool reach = kernels_running > 0 || block.copies > 0;
  mprotect(block.data, block.room, reach ? PROT_READ | PROT_WRITE : PROT_NONE);
}

// Returns the live block that contains an address, or null.
Block* block_at(std::uintptr_t address) {
  auto after = live().upper_bound(address);
  if (after == live().begin()) return nullptr;
  auto& [base, block] = *std::prev(after);
  return address < base + block.bytes ? &block : nullptr;
}

// Returns whether an address lies in a block's memory or in its fences, if it has fences.
bool is_mapped(const Block& block, std::uintptr_t address) {
  const auto map = reinterpret_cast<std::uintptr_t>(block.map);
  return map && address >= map && address < map + block.mapped;
}

std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

void poison(char* from, std::size_t bytes) {
  // The pattern is aligned to the memory's end of the mapping, a multiple of 4 in every case.
  auto* words = reinterpret_cast<std::uint32_t*>(from);
  std::fill(words, words + bytes / 4, global_poison);
  std::memcpy(from + bytes / 4 * 4, &global_poison, bytes % 4);
}

void* plain(std::size_t bytes, Block& block) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, std::max<std::size_t>(alignment(), 64), std::max<std::size_t>(bytes, 64)) != 0)
    return nullptr;
  block = {bytes, nullptr, 0, static_cast<char*>(pointer), bytes};
  return pointer;
}

void* fenced(std::size_t bytes, Block& block) {
  const std::size_t room = round_up(std::max<std::size_t>(bytes, 1), page);
  if (room < bytes) return nullptr;
  std::size_t fence = fence_bytes(), mapped = room + 2 * fence;
  void* map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED && fence > 1 << 20) {       // thousands of tensors exhaust the address space
    fence = 1 << 20;
    mapped = room + 2 * fence;
    map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (map == MAP_FAILED) return nullptr;
  char* data = static_cast<char*>(map) + fence;
  if (mprotect(data, room, PROT_READ | PROT_WRITE) != 0) {
    munmap(map, mapped);
    return nullptr;
  }
  block = {bytes, static_cast<char*>(map), mapped, data, room};
  return guard == Guard::front ? data : data + room - round_up(bytes, alignment());
}

// Checks that the accessible bytes outside [base, base + bytes) still hold the poison. Restores it elsewhere, so that
// a stray write is reported once.
bool restore_slack(std::uintptr_t base, const Block& block) {
  if (!block.map || block.input) return true;
  const char* poison_bytes = reinterpret_cast<const char*>(&global_poison);
  auto whole = [&](char* from, char* to) {
    bool kept = true;
    for (char* at = from; at < to; ++at) {
      const char expected = poison_bytes[(at - block.data) % 4];
      if (*at != expected) {
        *at = expected;
        kept = false;
      }
    }
    return kept;
  };
  char* start = reinterpret_cast<char*>(base);
  // A block much smaller than its page is checked near its edges only: 256 bytes each way.
  char* low = std::max(block.data, start - 256);
  char* high = std::min(block.data + block.room, start + block.bytes + 256);
  const bool before = whole(low, start);
  return whole(start + block.bytes, high) && before;
}

}  // namespace

void set_guard(Guard value) {
  std::lock_guard lock(mutex);
  guard = value;
}

void begin_command() {
  std::lock_guard lock(mutex);
  command_serial = serial;
}

static constexpr std::size_t large = 1 << 20;

std::size_t allocated_bytes() {
  std::lock_guard lock(mutex);
  std::size_t all = 0;
  for (const auto& [base, block] : live()) all += block.bytes;
  return all;
}

void* allocate(std::size_t bytes) { return allocate_at(bytes, __builtin_return_address(0)); }

void* allocate_at(std::size_t bytes, const void* code) {
  obey();
  std::lock_guard lock(mutex);
  Block block;
  void* pointer = guard == Guard::none ? plain(bytes, block) : fenced(bytes, block);
  if (!pointer) return nullptr;
  // A count of a few blocks at full size touches little of its memory: to fill it would take longer than to count.
  if (options().mode != Mode::count || bytes < large) poison(block.data, block.map ? block.room : block.bytes);
  block.serial = ++serial;
  block.code = reinterpret_cast<std::uintptr_t>(code);
  block.base = reinterpret_cast<std::uintptr_t>(pointer);
  live()[reinterpret_cast<std::uintptr_t>(pointer)] = block;
  if (code) report_leaks(1);
  return pointer;
}

void close_to_host(void* pointer) {
  if (!options().program || options().mode != Mode::check) return;
  std::lock_guard lock(mutex);
  auto found = live().find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == live().end() || !found->second.map) return;
  found->second.closed = true;
  ++closed_blocks;
  protect(found->second);
}

bool closed_to_host(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  const Block* block = block_at(address);
  return block && block->closed;
}

bool is_read_by_free(std::uintptr_t address) {
  constexpr std::uintptr_t notes = 16;
  std::lock_guard lock(mutex);
  const auto next = live().upper_bound(address);
  return next != live().end() && next->second.closed && next->first - address <= notes;
}

void allow_access_to_all(bool reach) {
  std::lock_guard lock(mutex);
  kernels_running += reach ? 1 : -1;
  if (closed_blocks == 0) return;
  for (const auto& [base, block] : live())
    if (block.closed) protect(block);
}

namespace {
// Opens the closed blocks that a copy touches. Holds no lock: the copy may fault.
struct CopyAccess {
  const void* const touched[2];
  std::uint64_t serials[2] = {};  // of the blocks that it has opened
  CopyAccess(const void* a, const void* b) : touched{a, b} {
    std::lock_guard lock(mutex);
    if (closed_blocks == 0) return;
    for (int i = 0; i < 2; ++i) {
      Block* block = block_at(reinterpret_cast<std::uintptr_t>(touched[i]));
      if (!block || !block->closed) continue;
      serials[i] = block->serial;
      ++block->copies;
      protect(*block);
    }
  }
  ~CopyAccess() {
    std::lock_guard lock(mutex);
    for (int i = 0; i < 2; ++i) {
      Block* block = serials[i] ? block_at(reinterpret_cast<std::uintptr_t>(touched[i])) : nullptr;
      if (!block || block->serial != serials[i]) continue;  // another host thread has freed it
      --block->copies;
      protect(*block);
    }
  }
};
}  // namespace

void register_host(void* pointer, std::size_t bytes) {
  std::lock_guard lock(mutex);
  if (pointer && bytes) registered()[reinterpret_cast<std::uintptr_t>(pointer)] = bytes;
}

void unregister_host(void* pointer) {
  std::lock_guard lock(mutex);
  registered().erase(reinterpret_cast<std::uintptr_t>(pointer));
}

void note_written(std::uintptr_t base, std::size_t bytes, std::uint8_t shift) {
  std::lock_guard lock(mutex);
  Block* block = closed_blocks ? block_at(base) : nullptr;
  if (!block || !block->closed) return;
  if (!block->written_bytes) block->written_bytes = std::make_shared<Written>(Written{std::vector<bool>(block->bytes)});
  Written& written = *block->written_bytes;
  const auto from = static_cast<std::ptrdiff_t>(base - block->base),
             to = static_cast<std::ptrdiff_t>(
                 std::min<std::size_t>(static_cast<std::size_t>(from) + bytes, block->bytes));
  std::fill(written.bytes.begin() + from, written.bytes.begin() + to, true);
  written.shift = std::min(written.shift, shift);
}

bool is_noted(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  const Block* block = closed_blocks ? block_at(address) : nullptr;
  return block && block->written_bytes && block->written_bytes->bytes[address - block->base];
}

void note_padding(std::uintptr_t first, std::size_t bytes, const bool* padding) {
  std::lock_guard lock(mutex);
  const Block* block = closed_blocks ? block_at(first) : nullptr;
  if (!block || !block->written_bytes || block->written_bytes->shift == word_shift) return;
  std::vector<bool>& written = block->written_bytes->bytes;
  const std::size_t ahead = (first - block->base) % bytes;
  for (std::size_t i = 0; i < written.size(); ++i)
    if (padding[(i + bytes - ahead) % bytes]) written[i] = true;
}

std::uint8_t smallest_piece(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  const Block* block = closed_blocks ? block_at(address) : nullptr;
  return block && block->written_bytes ? block->written_bytes->shift : word_shift;
}

void move_bytes(void* target, const void* source, std::size_t bytes) {
  const CopyAccess reached(target, source);
  std::memmove(target, source, bytes);
  if (bytes) note_written(reinterpret_cast<std::uintptr_t>(target), bytes);
}

void set_bytes(void* target, int byte, std::size_t bytes) {
  const CopyAccess reached(target, nullptr);
  std::memset(target, byte, bytes);
  if (bytes) note_written(reinterpret_cast<std::uintptr_t>(target), bytes);
}

bool release(void* pointer) {
  if (!pointer) return true;
  std::lock_guard lock(mutex);
  auto found = live().find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == live().end()) return false;
  const Block block = found->second;
  closed_blocks -= block.closed;
  freed[freed_count++ % remembered] = {found->first, block.bytes};
  live().erase(found);
  if (block.code && block.serial > command_serial) report_leaks(-1);
  if (block.map)
    munmap(block.map, block.mapped);
  else
    std::free(pointer);
  return true;
}

void release_all() {
  for (;;) {  // without a list of the blocks: there may be no memory for one
    void* pointer = nullptr;
    {
      std::lock_guard lock(mutex);
      const auto found =
          std::find_if(live().begin(), live().end(), [](const auto& each) { return !each.second.input; });
      if (found == live().end()) return;
      pointer = reinterpret_cast<void*>(found->first);
    }
    release(pointer);
  }
}

namespace {
// Returns the block nearest to an address, and its distance.
Place nearest_live(std::uintptr_t address, std::uintptr_t& distance) {
  auto& blocks = live();
  Place best;
  distance = ~std::uintptr_t(0);
  auto consider = [&](std::uintptr_t base, std::size_t bytes) {
    const std::uintptr_t away = address < base           ? base - address
                                : address < base + bytes ? 0
                                                         : address - (base + bytes) + 1;
    if (away >= distance) return;
    distance = away;
    best = {true, false, base, bytes};
  };
  auto after = blocks.upper_bound(address);
  if (after != blocks.end()) consider(after->first, after->second.bytes);
  if (after != blocks.begin()) consider(std::prev(after)->first, std::prev(after)->second.bytes);
  if (distance > std::uintptr_t(1) << 32) return {};
  return best;
}
}  // namespace

Place live_place_of(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  std::uintptr_t distance;
  return nearest_live(address, distance);
}

Place place_of(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  std::uintptr_t distance;
  const Place nearest = nearest_live(address, distance);
  if (distance == 0) return nearest;
  for (std::size_t i = 1; i <= std::min(freed_count, remembered); ++i) {      // the newest first
    const Freed& old = freed[(freed_count - i) % remembered];
    if (address - old.base < old.bytes) return {true, true, old.base, old.bytes};
  }
  return nearest;
}

std::vector<Extent> extents() {
  std::lock_guard lock(mutex);
  std::vector<Extent> all;
  all.reserve(live().size());
  for (const auto& [base, block] : live()) all.push_back({base, block.bytes});
  for (const auto& [base, bytes] : registered()) all.push_back({base, bytes});
  return all;
}

void visit_live(const std::function<void(std::uintptr_t, std::size_t)>& look) {
  std::lock_guard lock(mutex);
  for (const auto& [base, block] : live())
    if (!block.input && !block.closed && block.bytes) look(base, block.bytes);
}

void set_inputs(int descriptor) { inputs = descriptor; }

void* map_input(std::uint64_t offset, std::size_t bytes) {
  std::lock_guard lock(mutex);
  const std::uint64_t from = offset / page * page;
  const std::size_t within = offset - from, room = round_up(within + std::max<std::size_t>(bytes, 1), page);
  std::size_t fence = fence_bytes(), mapped = room + 2 * fence;
  void* map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED && fence > 1 << 20) {
    fence = 1 << 20;
    mapped = room + 2 * fence;
    map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (map == MAP_FAILED) return nullptr;
  char* data = static_cast<char*>(map) + fence;
  if (mmap(data, room, PROT_READ, MAP_PRIVATE | MAP_FIXED, inputs, static_cast<off_t>(from)) == MAP_FAILED) {
    munmap(map, mapped);
    return nullptr;
  }
  Block block = {bytes, static_cast<char*>(map), mapped, data, room};
  block.serial = ++serial;
  block.input = true;
  block.offset = offset;
  live()[reinterpret_cast<std::uintptr_t>(data + within)] = block;
  return data + within;
}

namespace {
// Returns the input on whose pages an address lies, and its address; null if there is none.
std::pair<const std::uintptr_t, Block>* input_at(std::uintptr_t address) {
  auto on = [&](auto at) {
    const auto data = reinterpret_cast<std::uintptr_t>(at->second.data);
    return at->second.input && address >= data && address < data + at->second.room;
  };
  auto after = live().upper_bound(address);
  if (after != live().end() && on(after)) return &*after;
  if (after != live().begin() && on(std::prev(after))) return &*std::prev(after);
  return nullptr;
}
}  // namespace

bool in_input(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  return input_at(address) != nullptr;
}

// Called by the handler of a fault, as open_fence.
InputFault open_input(std::uintptr_t address, bool open_rest) {
  std::lock_guard lock(mutex);
  auto* found = input_at(address);
  if (!found) return {};
  auto& [base, block] = *found;
  InputFault fault{true, address >= base && address < base + block.bytes, false, block.offset};
  if (!fault.inside && !open_rest) return fault;
  fault.first = fault.inside && !std::exchange(block.written, true);
  mprotect(reinterpret_cast<void*>(address / page * page), page, PROT_READ | PROT_WRITE);
  return fault;
}

bool is_allocated(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  return std::any_of(live().begin(), live().end(), [&](const auto& entry) {
    const auto& [base, block] = entry;
    return is_mapped(block, address) || (address >= base && address < base + block.bytes);
  });
}

// Called by the handler of a fault in a kernel, which holds no lock of this file.
bool open_fence(std::uintptr_t address) {
  std::lock_guard lock(mutex);
  if (open_pages().size() >= most_open) return false;
  const std::uintptr_t at = address / page * page;
  for (const auto& [base, block] : live()) {
    if (!is_mapped(block, at)) continue;
    const auto data = reinterpret_cast<std::uintptr_t>(block.data);
    if (block.input && at >= data && at < data + block.room) return false;
    if (mprotect(reinterpret_cast<void*>(at), page, PROT_READ | PROT_WRITE) != 0) return false;
    open_pages().push_back(at);
    return true;
  }
  return false;
}

void close_fences() {
  std::lock_guard lock(mutex);
  for (const std::uintptr_t at : open_pages()) {
    madvise(reinterpret_cast<void*>(at), page, MADV_DONTNEED);
    mprotect(reinterpret_cast<void*>(at), page, PROT_NONE);
  }
  open_pages().clear();
}

std::uint64_t now() {
  std::lock_guard lock(mutex);
  return serial;
}

std::vector<Leak> leaks(std::uint64_t since) {
  std::lock_guard lock(mutex);
  std::vector<Leak> all;
  for (const auto& [base, block] : live())
    if (block.code && block.serial > since) all.push_back({block.bytes, block.code});
  return all;
}

Place damaged() {
  std::lock_guard lock(mutex);
  for (const auto& [base, block] : live())
    if (!restore_slack(base, block)) return {true, false, base, block.bytes};
  return {};
}

}  // namespace simt
