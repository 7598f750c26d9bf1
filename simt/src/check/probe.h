// Declares the state that a checked build's probes read on every access. It is small, and the runtime fills it.
#pragma once

#include <simt/runtime.h>

#include <cstdint>

namespace simt {

// One worker's record of a granule of memory (4 bytes, or less if threads access it in smaller pieces).
// A key identifies a thread and a moment: [clock 24][epoch 10][site 18][many 1][atomic 1][thread 10]; 0: none yet.
//   clock   counts the barriers that blocks of this worker have passed, over all its blocks of a launch
//   epoch   counts the __syncwarp()s that the thread has passed since the block's last barrier
//   site    the access's place in the code
//   many    of a read: a second thread has read as well; of an atomic operation: Earlier says what came before it
//   atomic  an atomic operation, or a volatile read of shared memory
struct Cell {
  std::uint64_t write;  // the last one
  std::uint64_t read;  // the first one of the newest clock in which there was one
  std::uint64_t elsewhere;  // a read by an earlier block; in shared memory an asynchronous copy that is under way
  std::uint32_t value;  // after the last write, to see whether two writes agree
  std::uint32_t second;  // site, atomic and thread of a second reader, as in a key; key::again
};

namespace key {
inline constexpr unsigned thread_bits = 10, site_bits = 18, epoch_bits = 10, clock_shift = 40, epoch_shift = 30,
                          site_shift = 12;
inline constexpr std::uint64_t atomic = 1u << 10, many = 1u << 11, thread_mask = (1u << thread_bits) - 1;
inline constexpr std::uint64_t clock_limit = 1u << 24;
// Of Cell::second: the first reader has read again, at another place in the code.
inline constexpr std::uint32_t again = 1u << 31;
inline constexpr std::uint64_t below_epoch = (std::uint64_t(1) << epoch_shift) - 1;
inline unsigned thread(std::uint64_t k) { return static_cast<unsigned>(k & thread_mask); }
inline std::uint64_t clock(std::uint64_t k) { return k >> clock_shift; }
inline unsigned epoch(std::uint64_t k) { return static_cast<unsigned>(k >> epoch_shift & ((1u << epoch_bits) - 1)); }
inline unsigned site(std::uint64_t k) { return static_cast<unsigned>(k >> site_shift & ((1u << site_bits) - 1)); }
}  // namespace key

// The memory that one site accessed last: most sites access only one tensor.
struct Slot {
  enum Kind : std::uint8_t { unknown, global, shared, local, ignored };
  std::uintptr_t base;
  std::uintptr_t bytes;
  Cell* cells;  // null: no race detection here
  std::uint8_t shift;  // a cell stands for 1 << shift bytes
  Kind kind;
};

struct ProbeState {
  Slot* slots;  // one per site; null while no checked kernel runs on this thread
  std::uintptr_t text;  // where the module begins: site = (return address - text) >> 2
  std::uintptr_t sites;
  std::uint64_t clock;  // now, in a key's place
  std::uint64_t began;  // when the running block began, likewise
  std::uint64_t began_global;  // since when no other block's access counts: later than `began` after a grid barrier
  const std::uint16_t* epoch;  // of each thread
  // The newest write, whose value can be read only once it has happened.
  Cell* written;
  const void* written_at;
  unsigned written_cells;
  std::uint8_t written_shift;
  // Held until then where several workers run, so that no other one writes there meanwhile: that would be taken for this
  // one's value.
  unsigned char* place;
  bool several;
};
extern __thread __attribute__((tls_model("initial-exec"), visibility("default"))) ProbeState probe_state;

// Where the kernel has called a function of simt's headers that accesses memory for it (SIMT_CALLED); else null.
extern __thread __attribute__((tls_model("initial-exec"), visibility("default"))) const void* called_from;

enum Access : unsigned {
  reading = 0,
  writing = 1,
  atomically = 2,
  as_volatile = 4,
  modifying = 8,  // writes what it read
  as_bytes = 16,  // without a guaranteed alignment
  kind_shift = 8,  // of an atomic operation: its simt::Atomic
};

// Handles what the fast path cannot decide. `code`: the return address into the kernel.
SIMT_API void check_access(const void* address, std::size_t bytes, unsigned access, const void* code);
SIMT_API void check_fence(int scope);
SIMT_API void check_index(const char* file, int line, int column, const char* type, std::int64_t index,
                          const void* code);
SIMT_API void check_overflow(const char* file, int line, const char* what, const char* type, const void* code);
// Memory of kernels' `new` and malloc.
SIMT_API void* check_allocate(std::size_t bytes);
SIMT_API void check_release(void* pointer, const void* code);
// Memory of host code; the first returns the pointer.
SIMT_API void* note_on_heap(void* pointer, std::size_t bytes);
SIMT_API void forget_on_heap(void* pointer);
SIMT_API void settle_write();  // records the value of the newest write
SIMT_API void hold_place(const void* address);  // of the write that follows, in global memory

}  // namespace simt
