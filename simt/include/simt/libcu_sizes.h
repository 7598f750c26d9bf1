// libcu++'s small names that several of its headers share: thread scopes, and sizes that promise an alignment.
#pragma once

#include <stdio.h>

#include <simt/probe.h>
#include <simt/runtime.h>

namespace cuda {

enum thread_scope {
  thread_scope_system = 0,
  thread_scope_device = 1,
  thread_scope_block = 2,
  thread_scope_thread = 10
};

// A number of bytes; it and the addresses that go with it are multiples of Alignment.
template <::std::size_t Alignment>
struct aligned_size_t {
  static_assert(Alignment > 0 && (Alignment & (Alignment - 1)) == 0, "an alignment is a power of two");
  static constexpr ::std::size_t align = Alignment;
  ::std::size_t value;
  explicit constexpr aligned_size_t(::std::size_t bytes) : value(bytes) {}
  constexpr operator ::std::size_t() const { return value; }
};

namespace detail {

// The alignment that the types guarantee, from the elements or from the size.
template <class T, class Size> inline constexpr ::std::size_t promised = alignof(T) < 16 ? alignof(T) : 16;
template <class Size> inline constexpr ::std::size_t promised<void, Size> = 1;
template <class T, ::std::size_t Alignment>
inline constexpr ::std::size_t promised<T, aligned_size_t<Alignment>> = Alignment < 16 ? Alignment : 16;
template <::std::size_t Alignment>
inline constexpr ::std::size_t promised<void, aligned_size_t<Alignment>> = Alignment < 16 ? Alignment : 16;

SIMT_APART inline void check_aligned(const void* target, const void* source, ::std::size_t bytes,
                                     ::std::size_t alignment, int line) {
  if (((::std::size_t)target | (::std::size_t)source | bytes) % alignment == 0) return;
  const char* what = (::std::size_t)target % alignment   ? "target"
                     : (::std::size_t)source % alignment ? "source"
                                                         : "size";
  char text[200];
  snprintf(text, sizeof text,
           "memcpy_async() in line %d copies pieces of %zu bytes, from its type or aligned_size_t, but the %s is not a "
           "multiple of that.",
           line, alignment, what);
  simt::misused("misaligned", text, line);
}

}  // namespace detail
}  // namespace cuda
