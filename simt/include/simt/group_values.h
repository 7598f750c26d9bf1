// Shared by the reductions and scans of cooperative groups: the operators, and every thread's value by rank.
#pragma once

#include <simt/cooperative_groups.h>

namespace cooperative_groups {

namespace detail {

// Returns the values of all threads of the group, by rank.
template <class T>
struct Gathered {
  Words<T> words[32];
  T at(unsigned rank) const {
    T value{};
    __builtin_memcpy((void*)&value, words[rank].word, sizeof(T));
    return value;
  }
};
template <class T>
Gathered<T> gathered(unsigned lanes, const T& value, const char* what, int line) {
  Words<T> own;
  __builtin_memcpy(own.word, &value, sizeof(T));
  Gathered<T> all;
  for (unsigned w = 0; w < Words<T>::count; ++w) {
    const simt::Exchange met = simt::exchange(lanes, own.word[w], what, line);
    for (unsigned lane = 0, rank = 0; lane < 32; ++lane)
      if (lanes >> lane & 1)
        all.words[rank++].word[w] = met.present >> lane & 1 ? simt::put_in(met.value, lane) : simt::absent(sizeof(T));
  }
  return all;
}

template <class T> struct Plain {
  typedef T type;
};
template <class T> struct Plain<T&> {
  typedef T type;
};
template <class T> struct Plain<const T> {
  typedef T type;
};
template <class T> struct Plain<const T&> {
  typedef T type;
};
template <class T> using plain = typename Plain<T>::type;

}  // namespace detail

template <class T = void> struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T = void> struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};        // the smaller
template <class T = void> struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};     // the larger
template <class T = void> struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T = void> struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T = void> struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};
template <> struct plus<void> {
  template <class T> T operator()(T a, T b) const { return a + b; }
};
template <> struct less<void> {
  template <class T> T operator()(T a, T b) const { return b < a ? b : a; }
};
template <> struct greater<void> {
  template <class T> T operator()(T a, T b) const { return a < b ? b : a; }
};
template <> struct bit_and<void> {
  template <class T> T operator()(T a, T b) const { return a & b; }
};
template <> struct bit_or<void> {
  template <class T> T operator()(T a, T b) const { return a | b; }
};
template <> struct bit_xor<void> {
  template <class T> T operator()(T a, T b) const { return a ^ b; }
};

}  // namespace cooperative_groups
