// The buffers in which a counted build's probes record the events of a block's threads, one buffer per thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simt {

// An event is one word: [where in the code][address]. `where` is the low part of the return address into the kernel, in
// units of 4 bytes: no two calls share one. Addresses below first_address are no memory: 0 is the start of a basic
// block, the others are what threads do together (Together, src/run/observer.h).
#if defined(__aarch64__)
inline constexpr unsigned address_bits = 48;
#else
inline constexpr unsigned address_bits = 47;
#endif
inline constexpr unsigned where_bits = 64 - address_bits;
inline constexpr std::uint64_t address_mask = (std::uint64_t(1) << address_bits) - 1;
inline constexpr std::uint64_t first_address = 4096;

struct Recorder {
  std::uint64_t* next;        // the running thread's next event goes here
  std::uint64_t* end;         // its buffer is full there
  std::uint64_t* base;        // thread t's buffer begins at base + t * stride; null while nothing is recorded
  std::size_t stride;         // 0: the block isn't counted, all threads write into one buffer that is never read
  std::size_t capacity;
  std::uint64_t** stop;       // where the events of each thread that doesn't run now end
  std::uint64_t** limit;      // where its buffer does
};
extern __thread __attribute__((tls_model("initial-exec"), visibility("default"))) Recorder recorder;

inline __attribute__((always_inline)) void begin_events(unsigned thread) {
  if (!recorder.base) return;
  recorder.next = recorder.base + thread * recorder.stride;
  recorder.end = recorder.next + recorder.capacity;
}
inline __attribute__((always_inline)) void suspend_events(unsigned thread) {
  if (__builtin_expect(recorder.base != nullptr, 0)) recorder.stop[thread] = recorder.next;
}
inline __attribute__((always_inline)) void resume_events(unsigned thread) {
  if (__builtin_expect(recorder.base == nullptr, 1)) return;
  recorder.next = recorder.stop[thread];
  recorder.end = recorder.limit[thread];
}

// What a probe is called for.
enum class Event : std::uint8_t { unknown, block, read, write, atomic, together };
struct ProbeFunction {
  const void* address;
  Event event;
  std::uint8_t bytes;         // 0: not the same at every call
};

// The running thread's buffer is full: waits until the others have caught up, then writes the event.
extern "C" __attribute__((visibility("default"))) void simt_event_without_room(std::uint64_t event);
// Describes the call that returns to `code`, as far as the probe's function does not. kind: of an atomic operation, a
// simt::Atomic.
extern "C" __attribute__((visibility("default"))) void simt_event_site(const void* code, Event event, unsigned bytes,
                                                                       int kind);

}  // namespace simt
