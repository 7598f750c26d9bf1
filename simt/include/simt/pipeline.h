// __pipeline_memcpy_async and similar functions (cp.async): copies from global to shared memory that a wait completes.
#pragma once

#include <stdio.h>

#include <simt/async_copy.h>
#include <simt/probe.h>

namespace simt {

// PTX ISA on cp.async: 4, 8 or 16 bytes, each address a multiple of the size; CUDA C++ Programming Guide: into shared
// memory.
SIMT_APART inline void check_pipeline_copy(const char* call, const void* target, const void* source, std::size_t bytes,
                                           std::size_t zeros, int line) {
  char text[240];
  const char* reason = "misaligned";
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    snprintf(text, sizeof text, "%s in line %d copies %zu bytes. Copy 4, 8 or 16 bytes at a time.", call, line, bytes);
  } else if (zeros > bytes) {
    snprintf(text, sizeof text, "%s in line %d cannot fill %zu of %zu bytes with zeros.", call, line, zeros, bytes);
  } else if ((std::size_t)target % bytes || (std::size_t)source % bytes) {
    const bool to = (std::size_t)target % bytes != 0;
    snprintf(text, sizeof text,
             "%s in line %d needs a %s address that is a multiple of the size, %zu bytes; it is %zu past one.", call,
             line, to ? "target" : "source", bytes, (std::size_t)(to ? target : source) % bytes);
  } else if (!in_shared(target)) {
    reason = "illegal_address";
    snprintf(text, sizeof text,
             "%s in line %d copies into shared memory, but its target is not in the block's shared memory.", call,
             line);
  } else {
    return;
  }
  misused(reason, text, line);
}

}  // namespace simt

// zeros: how many bytes at the end of the target are set to 0 instead of being read.
SIMT_INLINE void __pipeline_memcpy_async(void* target, const void* source, std::size_t bytes, std::size_t zeros = 0,
                                         int line = __builtin_LINE()) {
  simt::check_pipeline_copy("__pipeline_memcpy_async()", target, source, bytes, zeros, line);
  if (zeros == 0) return simt::begin_copy(target, source, bytes);
  simt::CopyBits bits = 0;
  for (std::size_t i = 0; i < bytes - zeros; ++i) bits |= (simt::CopyBits)((const unsigned char*)source)[i] << 8 * i;
  simt::copy_later(target, bytes, bits);
}
SIMT_INLINE void __pipeline_commit() { simt::commit_copies(); }
// Waits until all but the newest `prior` batches of the calling thread's copies are complete. Values above 8 act as 8.
SIMT_INLINE void __pipeline_wait_prior(std::size_t prior) { simt::end_copies_prior(prior < 8 ? prior : 8); }
