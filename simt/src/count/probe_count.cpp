// Defines the probes of a counted build: each records one event. Linked into each extension of that mode.
#include <simt/probe.h>
#include <simt/recorder.h>

#define PROBE extern "C" __attribute__((visibility("hidden")))

namespace {

using namespace simt;

inline __attribute__((always_inline)) void note(const volatile void* address, const void* code) {
  const std::uint64_t where = reinterpret_cast<std::uintptr_t>(code) >> 2 << address_bits;
  const std::uint64_t event = where | reinterpret_cast<std::uintptr_t>(address);
  std::uint64_t* const at = recorder.next;
  if (__builtin_expect(at == recorder.end, 0)) return simt_event_without_room(event);
  *at = event;
  recorder.next = at + 1;
}

// Records an object that no single GPU instruction moves, in pieces.
void note_pieces(const void* address, std::size_t bytes, std::size_t piece, Event event, const void* code) {
  simt_event_site(code, event, static_cast<unsigned>(piece), 0);
  for (std::size_t at = 0; at < bytes; at += piece) note(static_cast<const char*>(address) + at, code);
}

// Of an object whose size the compiler has no access for; one of a size that it has is aligned to less: to 4 bytes, as
// structures of floats are. Of others the alignment isn't known: the largest size up to 16 bytes that divides them.
std::size_t piece_of(std::size_t bytes) {
  if (bytes == 16 || bytes == 8) return 4;
  if (bytes == 4 || bytes == 2) return 1;
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

void note_atomic(const volatile void* address, unsigned bytes, Atomic kind, const void* code) {
  const bool reads = kind == Atomic::load || kind == Atomic::first_8 || kind == Atomic::first_16;
  const Event event = reads ? Event::read : kind == Atomic::store ? Event::write : Event::atomic;
  simt_event_site(code, event, bytes, static_cast<int>(kind));
  note(address, code);
}

}  // namespace

PROBE void __sanitizer_cov_trace_pc() { note(nullptr, __builtin_return_address(0)); }

#define SIMT_PROBES(name, bytes)                                                                       \
  PROBE void __tsan_##name##read##bytes(void* address) { note(address, __builtin_return_address(0)); } \
  PROBE void __tsan_##name##write##bytes(void* address) { note(address, __builtin_return_address(0)); }
#define SIMT_PROBES_OF(bytes) \
  SIMT_PROBES(, bytes)        \
  SIMT_PROBES(volatile_, bytes)
SIMT_PROBES_OF(1)
SIMT_PROBES_OF(2)
SIMT_PROBES_OF(4)
SIMT_PROBES_OF(8)
SIMT_PROBES_OF(16)

// The compiler calls these for an access whose type does not guarantee the alignment, such as a struct of floats.
#define SIMT_UNALIGNED(name, bytes, piece)                                         \
  PROBE void __tsan_##name##read##bytes(void* address) {                           \
    note_pieces(address, bytes, piece, Event::read, __builtin_return_address(0));  \
  }                                                                                \
  PROBE void __tsan_##name##write##bytes(void* address) {                          \
    note_pieces(address, bytes, piece, Event::write, __builtin_return_address(0)); \
  }
#define SIMT_UNALIGNED_OF(bytes, piece)    \
  SIMT_UNALIGNED(unaligned_, bytes, piece) \
  SIMT_UNALIGNED(unaligned_volatile_, bytes, piece)
SIMT_UNALIGNED_OF(2, 1)
SIMT_UNALIGNED_OF(4, 1)
SIMT_UNALIGNED_OF(8, 4)
SIMT_UNALIGNED_OF(16, 4)

PROBE void __tsan_read_range(void* address, std::size_t bytes) {
  note_pieces(address, bytes, piece_of(bytes), Event::read, __builtin_return_address(0));
}
PROBE void __tsan_write_range(void* address, std::size_t bytes) {
  note_pieces(address, bytes, piece_of(bytes), Event::write, __builtin_return_address(0));
}
PROBE void __tsan_vptr_update(void**, void*) {}
PROBE void __tsan_vptr_read(void**) {}
PROBE void __tsan_init() {}
PROBE void __tsan_func_entry(void*) {}
PROBE void __tsan_func_exit() {}

PROBE void simt_probe_atomic(const void* address, unsigned bytes, int kind, const void* code) {
  note_atomic(address, bytes, static_cast<Atomic>(kind), code);
}
PROBE void simt_probe_fence(int) {}

// ---- the language's own __atomic functions, which the instrumentation turns into calls ----

#define SIMT_ATOMIC_FETCH(bits, T, name, kind, builtin)                   \
  PROBE T __tsan_atomic##bits##_##name(volatile T* a, T v, int) {         \
    note_atomic(a, sizeof(T), Atomic::kind, __builtin_return_address(0)); \
    return builtin(a, v, __ATOMIC_SEQ_CST);                               \
  }
#define SIMT_ATOMIC_COMPARE(bits, T, name, weak)                                           \
  PROBE bool __tsan_atomic##bits##_##name(volatile T* a, T* c, T v, int, int) {            \
    note_atomic(a, sizeof(T), Atomic::compare, __builtin_return_address(0));               \
    return __atomic_compare_exchange_n(a, c, v, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }
#define SIMT_ATOMIC_SIZE(bits, T)                                                         \
  PROBE T __tsan_atomic##bits##_load(const volatile T* a, int) {                          \
    note_atomic(a, sizeof(T), Atomic::load, __builtin_return_address(0));                 \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                          \
  }                                                                                       \
  PROBE void __tsan_atomic##bits##_store(volatile T* a, T v, int) {                       \
    note_atomic(a, sizeof(T), Atomic::store, __builtin_return_address(0));                \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                       \
  PROBE T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T c, T v, int, int) { \
    note_atomic(a, sizeof(T), Atomic::compare, __builtin_return_address(0));              \
    __atomic_compare_exchange_n(a, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
    return c;                                                                             \
  }                                                                                       \
  SIMT_ATOMIC_COMPARE(bits, T, compare_exchange_strong, false)                            \
  SIMT_ATOMIC_COMPARE(bits, T, compare_exchange_weak, true)                               \
  SIMT_ATOMIC_FETCH(bits, T, exchange, exchange, __atomic_exchange_n)                     \
  SIMT_ATOMIC_FETCH(bits, T, fetch_add, add, __atomic_fetch_add)                          \
  SIMT_ATOMIC_FETCH(bits, T, fetch_sub, sub, __atomic_fetch_sub)                          \
  SIMT_ATOMIC_FETCH(bits, T, fetch_and, and_, __atomic_fetch_and)                         \
  SIMT_ATOMIC_FETCH(bits, T, fetch_or, or_, __atomic_fetch_or)                            \
  SIMT_ATOMIC_FETCH(bits, T, fetch_xor, xor_, __atomic_fetch_xor)                         \
  SIMT_ATOMIC_FETCH(bits, T, fetch_nand, and_, __atomic_fetch_nand)
SIMT_ATOMIC_SIZE(8, std::uint8_t)
SIMT_ATOMIC_SIZE(16, std::uint16_t)
SIMT_ATOMIC_SIZE(32, std::uint32_t)
SIMT_ATOMIC_SIZE(64, std::uint64_t)
PROBE void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
PROBE void __tsan_atomic_signal_fence(int) {}

// The probe functions and their events: the runtime reads the call before an event's return address.
namespace simt {
extern "C" __attribute__((visibility("default"))) const ProbeFunction simt_probe_functions[];
#define SIMT_LISTED(bytes)                                                                                          \
  {(const void*)&__tsan_read##bytes, Event::read, bytes}, {(const void*)&__tsan_write##bytes, Event::write, bytes}, \
      {(const void*)&__tsan_volatile_read##bytes, Event::read, bytes},                                              \
      {(const void*)&__tsan_volatile_write##bytes, Event::write, bytes},
const ProbeFunction simt_probe_functions[] = {{(const void*)&__sanitizer_cov_trace_pc, Event::block, 0},
                                              SIMT_LISTED(1) SIMT_LISTED(2) SIMT_LISTED(4) SIMT_LISTED(8)
                                                  SIMT_LISTED(16){nullptr, Event::unknown, 0}};
}  // namespace simt
