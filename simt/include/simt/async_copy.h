// Asynchronous copies for all of CUDA's interfaces. The source is read at the call and the target is written at the
// wait, so that a kernel that forgets to wait sees the old content.
#pragma once

#include <simt/runtime.h>

namespace simt {

// bytes: 1, 2, 4, 8 or 16; both addresses are multiples of it. place: what the block's threads copy for together, or
// null for the thread's own batch.
SIMT_INLINE void begin_copy(void* target, const void* source, std::size_t bytes, const volatile void* place = nullptr) {
  CopyBits bits;
  switch (bytes) {
    case 16: bits = *(const CopyBits*)source; break;
    case 8: bits = *(const unsigned long*)source; break;
    case 4: bits = *(const unsigned*)source; break;
    case 2: bits = *(const unsigned short*)source; break;
    default: bits = *(const unsigned char*)source;
  }
  if (place)
    copy_later_at(place, target, bytes, bits);
  else
    copy_later(target, bytes, bits);
}

SIMT_INLINE void write_copy(Arrival to, CopyBits bits) {
  switch (to.bytes) {
    case 16: *(CopyBits*)to.target = bits; break;
    case 8: *(unsigned long*)to.target = (unsigned long)bits; break;
    case 4: *(unsigned*)to.target = (unsigned)bits; break;
    case 2: *(unsigned short*)to.target = (unsigned short)bits; break;
    default: *(unsigned char*)to.target = (unsigned char)bits;
  }
}

// Writes what the thread's batches up to this one have brought.
SIMT_INLINE void end_copies(unsigned batch) {
  for (Arrival to = next_arrival(batch); to.bytes; to = next_arrival(batch)) write_copy(to, arrived_bits());
}

// All but the newest `prior` batches.
SIMT_INLINE void end_copies_prior(std::size_t prior) {
  const unsigned committed = committed_copies();
  if (committed > prior) end_copies(committed - (unsigned)prior);
}

// Copies this thread's share, as number `rank`, of a copy that `count` threads make together, in pieces. A remainder
// that does not fill a piece is left out.
SIMT_INLINE void begin_copy_of(std::size_t piece, void* target, const void* source, std::size_t bytes, std::size_t rank,
                               std::size_t count, const volatile void* place = nullptr) {
  for (std::size_t at = piece * rank; at + piece <= bytes; at += piece * count)
    begin_copy((char*)target + at, (const char*)source + at, piece, place);
}

}  // namespace simt
