// Knows the memory that kernels allocate by `new` and malloc: its bounds, and whether it was freed.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>

#include "check/parts.h"

namespace simt {
namespace {

constexpr std::size_t gap = 64;  // bytes after each block, which belong to none
constexpr std::size_t most_freed = 1024, most_freed_bytes = 16 << 20;  // kept, to recognize an access to them

struct Block {
  std::size_t bytes;
  bool freed;
};
std::mutex heap_mutex;
std::map<std::uintptr_t, Block>& blocks() {
  static auto* all = new std::map<std::uintptr_t, Block>;
  return *all;
}
std::deque<std::uintptr_t> freed;  // the oldest first
std::size_t freed_bytes = 0;
std::atomic<bool> in_use{false};

void drop_oldest() {
  while (freed.size() > most_freed || (freed_bytes > most_freed_bytes && !freed.empty())) {
    const auto oldest = blocks().find(freed.front());
    freed.pop_front();
    freed_bytes -= oldest->second.bytes;
    std::free(reinterpret_cast<void*>(oldest->first));
    blocks().erase(oldest);
  }
}

void report_free(const char* what, const void* code) {
  Finding finding;
  finding.check = "illegal_address";
  checker_of(this_worker)->locate_caller(finding, code);
  finding.message = "Thread " + coordinates(cursor.current, blockDim) + " of block (" + std::to_string(blockIdx.x) +
                    ", " + std::to_string(blockIdx.y) + ", " + std::to_string(blockIdx.z) + ") frees " + what;
  add_finding(std::move(finding));
}

}  // namespace

HeapPlace heap_place(std::uintptr_t address) {
  if (!in_use.load(std::memory_order_acquire)) return {};
  std::lock_guard lock(heap_mutex);
  auto after = blocks().upper_bound(address);
  HeapPlace best;
  std::uintptr_t nearest = gap;
  auto consider = [&](const auto& block) {
    const std::uintptr_t base = block.first, end = base + block.second.bytes;
    const std::uintptr_t away = address < base ? base - address : address < end ? 0 : address - end;
    if (away >= nearest) return;
    nearest = away;
    best = {true, block.second.freed, base, block.second.bytes};
  };
  if (after != blocks().begin()) consider(*std::prev(after));
  if (after != blocks().end()) consider(*after);
  return best;
}

void* check_allocate(std::size_t bytes) {
  const Critical critical(*this_worker);
  auto* const pointer = static_cast<char*>(std::malloc(bytes + gap));
  if (!pointer) return nullptr;
  for (std::size_t i = 0; i < bytes; i += sizeof global_poison)
    std::memcpy(pointer + i, &global_poison, std::min(sizeof global_poison, bytes - i));
  std::lock_guard lock(heap_mutex);
  blocks()[reinterpret_cast<std::uintptr_t>(pointer)] = {bytes, false};
  in_use.store(true, std::memory_order_release);
  return pointer;
}

void check_release(void* pointer, const void* code) {
  if (!pointer) return;
  const Critical critical(*this_worker);
  const char* wrong = nullptr;
  {
    std::lock_guard lock(heap_mutex);
    const auto found = blocks().find(reinterpret_cast<std::uintptr_t>(pointer));
    if (found == blocks().end()) {
      wrong = "an address that no `new` or malloc of a kernel has returned. Pass the pointer as it was returned.";
    } else if (found->second.freed) {
      wrong = "memory that was already freed. Free it once.";
    } else {
      found->second.freed = true;
      freed.push_back(found->first);
      freed_bytes += found->second.bytes;
      drop_oldest();
    }
  }
  if (wrong) report_free(wrong, code);
}

}  // namespace simt
