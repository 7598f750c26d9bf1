// What the parts of cub share: operators, pairs, storage, values from lane to lane.
#pragma once

#include <stdio.h>

#include <simt/libcu_functional.h>
#include <simt/probe.h>
#include <simt/runtime.h>
#include <simt/warp.h>

namespace cub {

// ---- operators; cub of CUDA 13 has these only as cuda::std::plus<>, cuda::maximum<> and so on ----

struct Sum {
  template <class A, class B> SIMT_INLINE auto operator()(const A& a, const B& b) const -> decltype(a + b) {
    return a + b;
  }
};
struct Difference {
  template <class A, class B> SIMT_INLINE auto operator()(const A& a, const B& b) const -> decltype(a - b) {
    return a - b;
  }
};
struct Division {
  template <class A, class B> SIMT_INLINE auto operator()(const A& a, const B& b) const -> decltype(a / b) {
    return a / b;
  }
};
struct Equality {
  template <class A, class B> SIMT_INLINE bool operator()(const A& a, const B& b) const { return a == b; }
};
struct Inequality {
  template <class A, class B> SIMT_INLINE bool operator()(const A& a, const B& b) const { return a != b; }
};
struct Max : cuda::maximum<> {};
struct Min : cuda::minimum<> {};

template <class Key, class Value>
struct KeyValuePair {
  typedef Key Key_;
  typedef Value Value_;
  Key key;
  Value value;
  KeyValuePair() = default;
  constexpr KeyValuePair(const Key& k, const Value& v) : key(k), value(v) {}
  constexpr bool operator!=(const KeyValuePair& other) const { return value != other.value || key != other.key; }
};

// Of equal values the one with the smaller key.
struct ArgMax {
  template <class K, class V> SIMT_INLINE KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a,
                                                                        const KeyValuePair<K, V>& b) const {
    return b.value > a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class V> SIMT_INLINE KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a,
                                                                        const KeyValuePair<K, V>& b) const {
    return b.value < a.value || (b.value == a.value && b.key < a.key) ? b : a;
  }
};

namespace detail {

// Line of the student's call: a type of its own, so that it is never taken for a number that the student passes.
struct Line {
  int number;
};
#define SIMT_HERE ::cub::detail::Line here = {__builtin_LINE()}

// Room for values, without a constructor: it lies in shared memory.
template <class T, int count>
struct Room {
  static_assert(__is_trivially_copyable(T), "cub's primitives work on types that can be copied as bytes");
  alignas(T) unsigned char bytes[count * sizeof(T)];
  SIMT_INLINE T* values() { return (T*)bytes; }
};

// A value of which nothing may be expected: undefined on a GPU, shown as memory that was never written.
template <class T>
SIMT_INLINE T undefined() {
  unsigned char bytes[sizeof(T)];
  const std::uint64_t pattern = simt::absent(sizeof(T));
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = (unsigned char)(pattern >> i % 8 * 8);
  T value;
  __builtin_memcpy((void*)&value, bytes, sizeof(T));
  return value;
}

template <class T>
SIMT_INLINE T shuffled(unsigned lanes, const T& value, unsigned source, const char* what, int line) {
  static_assert(__is_trivially_copyable(T), "cub's primitives work on types that can be copied as bytes");
  constexpr std::size_t count = (sizeof(T) + 7) / 8;
  std::uint64_t words[count] = {};
  __builtin_memcpy(words, &value, sizeof(T));
  for (std::uint64_t& word : words) word = simt::shuffled(lanes, word, source, sizeof(T), what, line);
  T result = value;
  __builtin_memcpy((void*)&result, words, sizeof(T));
  return result;
}

// A block of other dimensions than the primitive's.
[[noreturn]] inline __attribute__((noinline, cold)) void other_block(const char* what, int line, int x, int y, int z) {
  char text[240];
  snprintf(text, sizeof text, "%s in line %d is for blocks of %d x %d x %d threads, but this block has %u x %u x %u.",
           what, line, x, y, z, blockDim.x, blockDim.y, blockDim.z);
  simt::misused("launch_error", text, line);
}
template <int X, int Y, int Z>
SIMT_INLINE void check_block(const char* what, int line) {
  if (blockDim.x != X || blockDim.y != Y || blockDim.z != Z) other_block(what, line, X, Y, Z);
}

// The storage of a primitive that was given none; the runtime knows the name as that of a shared array.
template <class Storage>
SIMT_INLINE Storage& private_storage() {
  static __thread Storage simt_storage;
  return simt_storage;
}

}  // namespace detail
}  // namespace cub
