// Defines the probes of a checked build, which the compiler's instrumentation calls before an access. Linked into each
// extension of that mode.
#include "check/probe.h"

#include <simt/probe.h>

#include <cerrno>
#include <cstring>
#include <new>

#define PROBE extern "C" __attribute__((visibility("hidden")))

namespace {

using namespace simt;

template <class T>
inline T load(const void* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

// Returns whether a value is the poison of memory that was never written.
template <unsigned bytes>
inline bool holds_poison(const void* address, std::uint32_t pattern) {
  if constexpr (bytes == 1)
    return load<std::uint8_t>(address) ==
           static_cast<std::uint8_t>(pattern >> 8 * (reinterpret_cast<std::uintptr_t>(address) % 4));
  if constexpr (bytes == 2) return load<std::uint16_t>(address) == static_cast<std::uint16_t>(pattern);
  if constexpr (bytes == 4) return load<std::uint32_t>(address) == pattern;
  if constexpr (bytes == 8)
    return load<std::uint32_t>(address) == pattern || load<std::uint32_t>((const char*)address + 4) == pattern;
  if constexpr (bytes == 16) {
    const auto* words = static_cast<const char*>(address);
    return (load<std::uint32_t>(words) == pattern) | (load<std::uint32_t>(words + 4) == pattern) |
           (load<std::uint32_t>(words + 8) == pattern) | (load<std::uint32_t>(words + 12) == pattern);
  }
}

// Returns whether a piece of a word holds the poison, which a write of the other pieces has left there. Pieces are halves
// or, with shift 0, bytes.
template <unsigned bytes>
inline bool holds_poison_in_part(const void* address, std::uint32_t pattern, unsigned shift) {
  bool found = false;
  const auto* pieces = static_cast<const char*>(address);
  if (bytes < 4) return false;
  for (unsigned at = 0; at < bytes; at += 2) found |= holds_poison<2>(pieces + at, pattern);
  for (unsigned at = 0; shift == 0 && at < bytes; ++at) found |= holds_poison<1>(pieces + at, pattern);
  return found;
}

// Checks an access to the memory that its site accessed before. check_access handles every unclear case in full.
template <unsigned bytes, bool write>
__attribute__((noinline)) void check_in_place(const void* address, const void* code) {
  ProbeState& state = probe_state;
  const std::uintptr_t site = (reinterpret_cast<std::uintptr_t>(code) - state.text) >> 2;
  const Slot& slot = state.slots[site];
  const unsigned shift = slot.shift;
  if (__builtin_expect(bytes >> shift == 0, 0)) return check_access(address, bytes, write, code);
  const bool shared = slot.kind == Slot::shared;
  if (!write && !shared && __builtin_expect(holds_poison<bytes>(address, global_poison), 0))
    return check_access(address, bytes, write, code);
  if (!write && !shared && __builtin_expect(shift < 2, 0) && holds_poison_in_part<bytes>(address, global_poison, shift))
    return check_access(address, bytes, write, code);
  const std::uint64_t me = cursor.current;
  const std::uint64_t clock = state.clock, began = shared ? state.began : state.began_global;
  const std::uint64_t mine = clock | std::uint64_t(state.epoch[me]) << key::epoch_shift | site << key::site_shift | me;
  Cell* const cells = slot.cells + ((reinterpret_cast<std::uintptr_t>(address) - slot.base) >> shift);
  // The clock is the highest part of a key, and no key is ahead of it: k >= clock means "since the last barrier".
  auto clashes = [&](std::uint64_t k) { return k >= clock ? (k & key::thread_mask) != me : k < began && k != 0; };
  auto clashes_now = [&](std::uint64_t k) { return k >= clock && (k & (key::thread_mask | key::many)) != me; };
  for (Cell* cell = cells; cell < cells + (bytes >> shift); ++cell) {
    const std::uint64_t last = cell->write, read = cell->read;
    if (!write) {
      // In shared memory a write of an earlier block, or none, means that it was never written.
      if (shared ? last < began || clashes_now(last) || cell->elsewhere : clashes(last) || last & key::many)
        return check_access(address, bytes, write, code);
      if (read >= clock) {
        if (read & key::atomic) return check_access(address, bytes, write, code);
        if (read & key::many) continue;
        if ((read & key::thread_mask) == me) {
          if (key::site(read) != site) cell->second |= key::again;
          continue;
        }
        cell->read = read | key::many;
        cell->second = (cell->second & key::again) | static_cast<std::uint32_t>(site << key::site_shift | me);
      } else {
        if (!shared && read < began && read) cell->elsewhere = read;
        cell->read = mine;
        cell->second = 0;
      }
    } else if (shared) {
      if (clashes_now(last) || (read >= clock && (read & key::many || (read & key::thread_mask) != me)) ||
          cell->elsewhere)
        return check_access(address, bytes, write, code);
    } else if (clashes(last) || last & key::many || clashes(read) || (read & key::many && read >= clock) ||
               cell->elsewhere) {
      return check_access(address, bytes, write, code);
    }
  }
  if (!write) return;
  if (state.written) settle_write();
  if (!shared && state.several) hold_place(address);
  for (unsigned i = 0; i < bytes >> shift; ++i) cells[i].write = mine;
  state.written = cells;
  state.written_at = address;
  state.written_cells = bytes >> shift;
  state.written_shift = static_cast<std::uint8_t>(shift);
}

template <unsigned bytes, bool write>
inline __attribute__((always_inline)) void probe(const void* address, const void* code) {
  ProbeState& state = probe_state;
  if (__builtin_expect(!state.slots, 0)) return;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t site = (reinterpret_cast<std::uintptr_t>(code) - state.text) >> 2;
  if (__builtin_expect(site >= state.sites || (bytes > 1 && (at & (bytes - 1))), 0))
    return check_access(address, bytes, write, code);
  const Slot& slot = state.slots[site];
  const std::uintptr_t offset = at - slot.base;
  if (__builtin_expect(offset >= slot.bytes || slot.bytes - offset < bytes, 0))
    return check_access(address, bytes, write, code);
  if (!slot.cells) {
    if (slot.kind == Slot::ignored) return;
    if (!write &&
        __builtin_expect(holds_poison<bytes>(address, slot.kind == Slot::local ? local_poison : global_poison), 0))
      check_access(address, bytes, write, code);
    return;
  }
  // The most frequent case for a tile: the granule was written before the last barrier and others have read it since.
  if (!write && slot.kind == Slot::shared && bytes == 1u << slot.shift) {
    const Cell& cell = slot.cells[offset / bytes];
    if (cell.write >= state.began && cell.write < state.clock && cell.read >= state.clock &&
        (cell.read & (key::many | key::atomic)) == key::many)
      return;
  }
  check_in_place<bytes, write>(address, code);
}

inline void careful(const void* address, std::size_t bytes, unsigned access, const void* code) {
  if (probe_state.slots) check_access(address, bytes, access, code);
}

}  // namespace

#define SIMT_PROBES(bytes)                                                                                    \
  PROBE void __tsan_read##bytes(void* address) { probe<bytes, false>(address, __builtin_return_address(0)); } \
  PROBE void __tsan_write##bytes(void* address) { probe<bytes, true>(address, __builtin_return_address(0)); } \
  PROBE void __tsan_volatile_read##bytes(void* address) {                                                     \
    careful(address, bytes, reading | as_volatile, __builtin_return_address(0));                              \
  }                                                                                                           \
  PROBE void __tsan_volatile_write##bytes(void* address) {                                                    \
    careful(address, bytes, writing | as_volatile, __builtin_return_address(0));                              \
  }
// By which the runtime knows a checked build.
extern "C" __attribute__((visibility("default"))) const int simt_probes_accesses;
const int simt_probes_accesses = 1;

SIMT_PROBES(1)
SIMT_PROBES(2)
SIMT_PROBES(4)
SIMT_PROBES(8)
SIMT_PROBES(16)

// The compiler calls these for an access whose type does not guarantee the alignment.
#define SIMT_UNALIGNED(bytes)                                                               \
  PROBE void __tsan_unaligned_read##bytes(void* address) {                                  \
    careful(address, bytes, reading | as_bytes, __builtin_return_address(0));               \
  }                                                                                         \
  PROBE void __tsan_unaligned_write##bytes(void* address) {                                 \
    careful(address, bytes, writing | as_bytes, __builtin_return_address(0));               \
  }                                                                                         \
  PROBE void __tsan_unaligned_volatile_read##bytes(void* address) {                         \
    careful(address, bytes, reading | as_volatile | as_bytes, __builtin_return_address(0)); \
  }                                                                                         \
  PROBE void __tsan_unaligned_volatile_write##bytes(void* address) {                        \
    careful(address, bytes, writing | as_volatile | as_bytes, __builtin_return_address(0)); \
  }
SIMT_UNALIGNED(2)
SIMT_UNALIGNED(4)
SIMT_UNALIGNED(8)
SIMT_UNALIGNED(16)

PROBE void __tsan_read_range(void* address, std::size_t bytes) {
  careful(address, bytes, reading | as_bytes, __builtin_return_address(0));
}
PROBE void __tsan_write_range(void* address, std::size_t bytes) {
  careful(address, bytes, writing | as_bytes, __builtin_return_address(0));
}
PROBE void __tsan_vptr_update(void** pointer, void*) {
  probe<sizeof(void*), true>(pointer, __builtin_return_address(0));
}
PROBE void __tsan_vptr_read(void** pointer) { probe<sizeof(void*), false>(pointer, __builtin_return_address(0)); }
PROBE void __tsan_init() {}
PROBE void __tsan_func_entry(void*) {}
PROBE void __tsan_func_exit() {}

PROBE void simt_probe_atomic(const void* address, unsigned bytes, int kind, const void* code) {
  const auto what = static_cast<Atomic>(kind);
  const unsigned access = what == Atomic::load                                ? reading
                          : what == Atomic::store || what == Atomic::exchange ? writing
                                                                              : writing | modifying;
  careful(address, bytes, access | atomically | static_cast<unsigned>(kind) << kind_shift, code);
}
// Copies of a length that the compiler does not know are calls: these functions replace the C library's.
extern "C" void* __memcpy_chk(void*, const void*, std::size_t, std::size_t);
extern "C" void* __memmove_chk(void*, const void*, std::size_t, std::size_t);
extern "C" void* __memset_chk(void*, int, std::size_t, std::size_t);
// Hides the bound from the compiler, which would otherwise turn these calls into calls of the functions below.
static inline std::size_t any_length() {
  std::size_t most = ~std::size_t(0);
  __asm__("" : "+r"(most));
  return most;
}
#define SIMT_COPIES(T, name, ...)                   \
  PROBE T probe_##name(__VA_ARGS__) __asm__(#name); \
  T probe_##name(__VA_ARGS__)
SIMT_COPIES(void*, memcpy, void* to, const void* from, std::size_t bytes) {
  if (bytes) careful(from, bytes, reading | as_bytes, __builtin_return_address(0));
  if (bytes) careful(to, bytes, writing | as_bytes, __builtin_return_address(0));
  return __memcpy_chk(to, from, bytes, any_length());
}
SIMT_COPIES(void*, memmove, void* to, const void* from, std::size_t bytes) {
  if (bytes) careful(from, bytes, reading | as_bytes, __builtin_return_address(0));
  if (bytes) careful(to, bytes, writing | as_bytes, __builtin_return_address(0));
  return __memmove_chk(to, from, bytes, any_length());
}
SIMT_COPIES(void*, memset, void* to, int value, std::size_t bytes) {
  if (bytes) careful(to, bytes, writing | as_bytes, __builtin_return_address(0));
  return __memset_chk(to, value, bytes, any_length());
}

// ---- memory that kernels allocate; host code of the same file goes on to the C library ----

extern "C" void* __libc_malloc(std::size_t);
extern "C" void* __libc_calloc(std::size_t, std::size_t);
extern "C" void* __libc_realloc(void*, std::size_t);
extern "C" void* __libc_memalign(std::size_t, std::size_t);
extern "C" void __libc_free(void*);

namespace {
void* allocate(std::size_t bytes) {
  return probe_state.slots ? check_allocate(bytes) : note_on_heap(__libc_malloc(bytes), bytes);
}
void* allocate_or_throw(std::size_t bytes) {
  void* const pointer = allocate(bytes || probe_state.slots ? bytes : 1);
  if (!pointer && !probe_state.slots) throw std::bad_alloc();
  return pointer;
}
void release(void* pointer, const void* code) {
  if (probe_state.slots) return check_release(pointer, code);
  forget_on_heap(pointer);
  __libc_free(pointer);
}
}  // namespace

// Weak, since a program may replace them.
#define SIMT_HEAP(T, function, symbol, ...)                                    \
  PROBE T probe_##function(__VA_ARGS__) __asm__(symbol) __attribute__((weak)); \
  T probe_##function(__VA_ARGS__)
SIMT_HEAP(void*, malloc, "malloc", std::size_t bytes) { return allocate(bytes); }
SIMT_HEAP(void*, calloc, "calloc", std::size_t count, std::size_t bytes) {
  return note_on_heap(__libc_calloc(count, bytes), count * bytes);
}
SIMT_HEAP(void*, realloc, "realloc", void* pointer, std::size_t bytes) {
  void* const moved = __libc_realloc(pointer, bytes);
  if (moved || !bytes) forget_on_heap(pointer);
  return note_on_heap(moved, bytes);
}
SIMT_HEAP(void*, aligned_alloc, "aligned_alloc", std::size_t alignment, std::size_t bytes) {
  return note_on_heap(__libc_memalign(alignment, bytes), bytes);
}
SIMT_HEAP(int, posix_memalign, "posix_memalign", void** pointer, std::size_t alignment, std::size_t bytes) {
  void* const memory = __libc_memalign(alignment, bytes);
  if (!memory) return ENOMEM;
  *pointer = note_on_heap(memory, bytes);
  return 0;
}
SIMT_HEAP(void, free, "free", void* pointer) { release(pointer, __builtin_return_address(0)); }
SIMT_HEAP(void*, new, "_Znwm", std::size_t bytes) { return allocate_or_throw(bytes); }
SIMT_HEAP(void*, new_array, "_Znam", std::size_t bytes) {
  return probe_state.slots ? allocate_or_throw(bytes) : ::operator new(bytes);
}
SIMT_HEAP(void, delete, "_ZdlPv", void* pointer) { release(pointer, __builtin_return_address(0)); }
SIMT_HEAP(void, delete_array, "_ZdaPv", void* pointer) {
  if (!probe_state.slots) return ::operator delete(pointer);
  release(pointer, __builtin_return_address(0));
}
SIMT_HEAP(void, delete_sized, "_ZdlPvm", void* pointer, std::size_t) { release(pointer, __builtin_return_address(0)); }
SIMT_HEAP(void, delete_array_sized, "_ZdaPvm", void* pointer, std::size_t) {
  if (!probe_state.slots) return ::operator delete(pointer);
  release(pointer, __builtin_return_address(0));
}

PROBE void simt_probe_fence(int scope) {
  if (probe_state.slots) check_fence(scope);
}

// ---- the language's own __atomic functions, which the instrumentation turns into calls ----

#define SIMT_ATOMIC_SIZE(bits, T)                                                                \
  PROBE T __tsan_atomic##bits##_load(const volatile T* a, int) {                                 \
    careful((const void*)a, sizeof(T), reading | atomically, __builtin_return_address(0));       \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                              \
  PROBE void __tsan_atomic##bits##_store(volatile T* a, T v, int) {                              \
    careful((const void*)a, sizeof(T), writing | atomically, __builtin_return_address(0));       \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                    \
  }                                                                                              \
  PROBE bool __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* c, T v, int, int) { \
    careful((const void*)a, sizeof(T), writing | atomically, __builtin_return_address(0));       \
    return __atomic_compare_exchange_n(a, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
  }                                                                                              \
  PROBE bool __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* c, T v, int, int) {   \
    careful((const void*)a, sizeof(T), writing | atomically, __builtin_return_address(0));       \
    return __atomic_compare_exchange_n(a, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
  }                                                                                              \
  PROBE T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T c, T v, int, int) {        \
    careful((const void*)a, sizeof(T), writing | atomically, __builtin_return_address(0));       \
    __atomic_compare_exchange_n(a, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);            \
    return c;                                                                                    \
  }                                                                                              \
  SIMT_ATOMIC_FETCH(bits, T, exchange, __atomic_exchange_n)                                      \
  SIMT_ATOMIC_FETCH(bits, T, fetch_add, __atomic_fetch_add)                                      \
  SIMT_ATOMIC_FETCH(bits, T, fetch_sub, __atomic_fetch_sub)                                      \
  SIMT_ATOMIC_FETCH(bits, T, fetch_and, __atomic_fetch_and)                                      \
  SIMT_ATOMIC_FETCH(bits, T, fetch_or, __atomic_fetch_or)                                        \
  SIMT_ATOMIC_FETCH(bits, T, fetch_xor, __atomic_fetch_xor)                                      \
  SIMT_ATOMIC_FETCH(bits, T, fetch_nand, __atomic_fetch_nand)
#define SIMT_ATOMIC_FETCH(bits, T, name, builtin)                                          \
  PROBE T __tsan_atomic##bits##_##name(volatile T* a, T v, int) {                          \
    careful((const void*)a, sizeof(T), writing | atomically, __builtin_return_address(0)); \
    return builtin(a, v, __ATOMIC_SEQ_CST);                                                \
  }
SIMT_ATOMIC_SIZE(8, std::uint8_t)
SIMT_ATOMIC_SIZE(16, std::uint16_t)
SIMT_ATOMIC_SIZE(32, std::uint32_t)
SIMT_ATOMIC_SIZE(64, std::uint64_t)
PROBE void __tsan_atomic_thread_fence(int) {
  if (probe_state.slots) check_fence(1);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
PROBE void __tsan_atomic_signal_fence(int) {}

// ---- index and arithmetic checks: the layout of what the compiler passes is its ABI ----

namespace {
struct Location {
  const char* file;
  std::uint32_t line, column;
};
struct Type {
  std::uint16_t kind, info;
  char name[1];
};
struct OutOfBounds {
  Location where;
  const Type* array;
  const Type* index;
};
struct Overflow {
  Location where;
  const Type* type;
};

// A value as the compiler passes it: in a register if it fits, else by address.
std::int64_t value_of(const Type* type, std::uintptr_t value) {
  const unsigned bits = 1u << (type->info >> 1);
  if (bits > 64) return 0;
  if (!(type->info & 1)) return static_cast<std::int64_t>(value);
  return bits == 64 ? static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

void overflowed(const Overflow* data, const char* what, const void* code) {
  if (probe_state.slots)
    check_overflow(data->where.file, static_cast<int>(data->where.line), what, data->type->name, code);
}
}  // namespace

PROBE void __ubsan_handle_out_of_bounds(const OutOfBounds* data, std::uintptr_t index) {
  if (probe_state.slots)
    check_index(data->where.file, static_cast<int>(data->where.line), static_cast<int>(data->where.column),
                data->array->name, value_of(data->index, index), __builtin_return_address(0));
}
PROBE void __ubsan_handle_add_overflow(const Overflow* data, std::uintptr_t, std::uintptr_t) {
  overflowed(data, "addition", __builtin_return_address(0));
}
PROBE void __ubsan_handle_sub_overflow(const Overflow* data, std::uintptr_t, std::uintptr_t) {
  overflowed(data, "subtraction", __builtin_return_address(0));
}
PROBE void __ubsan_handle_mul_overflow(const Overflow* data, std::uintptr_t, std::uintptr_t) {
  overflowed(data, "multiplication", __builtin_return_address(0));
}
PROBE void __ubsan_handle_negate_overflow(const Overflow* data, std::uintptr_t) {
  overflowed(data, "negation", __builtin_return_address(0));
}
PROBE void __ubsan_handle_divrem_overflow(const Overflow* data, std::uintptr_t, std::uintptr_t) {
  overflowed(data, "division", __builtin_return_address(0));
}
