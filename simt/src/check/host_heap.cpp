// Takes down what host code of a checked program allocates with malloc and new, so that a copy past its end is reported.
#include <malloc.h>
#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <new>

#include "check/checker.h"
#include "run/options.h"

namespace simt {
namespace {

// The nodes of the map below, in memory of their own: the program may have damaged malloc's, and a thread that crashes in
// malloc must not hold the lock.
template <class T>
struct Nodes {
  using value_type = T;
  Nodes() = default;
  template <class U>
  Nodes(const Nodes<U>&) {}
  T* allocate(std::size_t) {
    if (!unused_) {
      constexpr std::size_t bytes = 1 << 20;
      void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw std::bad_alloc();
      for (std::size_t i = 0; i < bytes / sizeof(Node); ++i) deallocate(&static_cast<Node*>(memory)[i].value, 1);
    }
    Node* const node = unused_;
    unused_ = node->next;
    return &node->value;
  }
  void deallocate(T* value, std::size_t) {
    Node* const node = reinterpret_cast<Node*>(value);
    node->next = unused_;
    unused_ = node;
  }
  bool operator==(const Nodes&) const { return true; }

 private:
  union Node {
    Node* next;
    T value;
  };
  static inline Node* unused_ = nullptr;
};

using Sizes = std::map<std::uintptr_t, std::size_t, std::less<>, Nodes<std::pair<const std::uintptr_t, std::size_t>>>;

std::mutex mutex;
bool is_complete = true;  // false once there was no memory for a node

Sizes& sizes() {
  static auto* made = new Sizes;  // used until the process ends
  return *made;
}

}  // namespace

void* note_on_heap(void* pointer, std::size_t bytes) {
  if (!pointer || !options().program) return pointer;
  std::lock_guard lock(mutex);
  if (!is_complete) return pointer;
  try {
    sizes().insert_or_assign(reinterpret_cast<std::uintptr_t>(pointer), bytes);
  } catch (const std::bad_alloc&) {
    is_complete = false;
  }
  return pointer;
}

void forget_on_heap(void* pointer) {
  if (!pointer || !options().program) return;
  std::lock_guard lock(mutex);
  sizes().erase(reinterpret_cast<std::uintptr_t>(pointer));
}

std::size_t left_on_heap(const void* address) {
  std::lock_guard lock(mutex);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = sizes().upper_bound(at);
  if (!is_complete || found == sizes().begin()) return SIZE_MAX;
  const auto [base, bytes] = *--found;
  if (at - base >= bytes) return SIZE_MAX;
  // A library that the program calls may have freed the memory, and got it for something else.
  const std::size_t usable = malloc_usable_size(reinterpret_cast<void*>(base));
  return usable < bytes || usable > bytes + 4096 ? SIZE_MAX : base + bytes - at;
}

}  // namespace simt
