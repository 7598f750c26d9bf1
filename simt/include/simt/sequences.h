// The algorithms behind cub's device-wide functions and thrust, as one thread runs them over random-access iterators.
#pragma once

#include <stdlib.h>

#include <simt/device_call.h>

namespace simt {

using Index = std::ptrdiff_t;

template <class Op, class A, class B>
using result_of = std::decay_t<std::invoke_result_t<Op&, A, B>>;

struct Less {
  template <class A, class B> constexpr bool operator()(const A& a, const B& b) const { return a < b; }
};
struct Equal {
  template <class A, class B> constexpr bool operator()(const A& a, const B& b) const { return a == b; }
};
struct Plus {
  template <class A, class B> constexpr auto operator()(const A& a, const B& b) const { return a + b; }
};

template <class T, class It, class Op>
T reduce(It in, Index n, T sum, Op op) {
  for (Index i = 0; i < n; ++i) sum = op(sum, in[i]);
  return sum;
}

// Scans n items. inclusive, has_start: whether `sum` is the value before the first item.
template <class T, class It, class Out, class Op>
void scan(It in, Out out, Index n, T sum, bool has_start, bool inclusive, Op op) {
  for (Index i = 0; i < n; ++i) {
    const value_of<It> item = in[i];  // before the write: in and out may be the same
    const T next = has_start ? static_cast<T>(op(sum, item)) : static_cast<T>(item);
    if (inclusive)
      out[i] = next;
    else
      out[i] = sum;
    sum = next;
    has_start = true;
  }
}
// The same, beginning anew at each key that differs from the one before. start: of every segment, of an exclusive scan.
template <class T, class Keys, class It, class Out, class Same, class Op>
void scan_by_key(Keys keys, It in, Out out, Index n, T start, bool inclusive, Same same, Op op) {
  T sum = start;
  for (Index i = 0; i < n;) {
    const value_of<Keys> key = keys[i];
    for (bool first = true; i < n && (first || same(key, static_cast<value_of<Keys>>(keys[i]))); ++i, first = false) {
      const value_of<It> item = in[i];
      if (inclusive) {
        sum = first ? static_cast<T>(item) : static_cast<T>(op(sum, item));
        out[i] = sum;
      } else {
        if (first) sum = start;
        out[i] = sum;
        sum = op(sum, item);
      }
    }
  }
}
// Reduces each run of equal neighbours; returns their number.
template <class T, class Keys, class It, class KeysOut, class Out, class Same, class Op>
Index reduce_by_key(Keys keys, It in, KeysOut keys_out, Out out, Index n, Same same, Op op) {
  Index runs = 0;
  for (Index i = 0; i < n; ++runs) {
    const value_of<Keys> key = keys[i];
    T sum = static_cast<T>(static_cast<value_of<It>>(in[i]));
    for (++i; i < n && same(key, static_cast<value_of<Keys>>(keys[i])); ++i) sum = op(sum, in[i]);
    keys_out[runs] = key;
    out[runs] = sum;
  }
  return runs;
}

// Copies the items that `keep(item, position)` selects; returns their number.
template <class It, class Out, class Keep>
Index select(It in, Out out, Index n, Keep keep) {
  Index kept = 0;
  for (Index i = 0; i < n; ++i) {
    const value_of<It> item = in[i];
    if (keep(item, i)) out[kept++] = item;
  }
  return kept;
}
// Copies the first item of each run of equal neighbours, and its value; returns the number of runs.
template <class Keys, class Values, class KeysOut, class ValuesOut, class Same>
Index unique(Keys keys, Values values, KeysOut keys_out, ValuesOut values_out, Index n, Same same) {
  Index runs = 0;
  for (Index i = 0; i < n; ++runs) {
    const value_of<Keys> key = keys[i];
    const value_of<Values> value = values[i];
    for (++i; i < n && same(key, static_cast<value_of<Keys>>(keys[i]));) ++i;
    keys_out[runs] = key;
    values_out[runs] = value;
  }
  return runs;
}

// The position of the first item that comes after no other in the order `less`, or of the last one for the largest.
template <class It, class Op>
Index find_least(It in, Index n, Op less) {
  Index best = 0;
  for (Index i = 1; i < n; ++i)
    if (less(in[i], in[best])) best = i;
  return best;
}
template <class It, class Op>
Index find_most(It in, Index n, Op less) {
  Index best = 0;
  for (Index i = 1; i < n; ++i)
    if (less(in[best], in[i])) best = i;
  return best;
}

// The first position at which `before(item)` is false.
template <class It, class Before>
Index bisect(It in, Index n, Before before) {
  Index low = 0;
  while (n > 0) {
    const Index half = n / 2;
    if (before(in[low + half])) {
      low += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return low;
}

// ---- sorting: a merge sort of pointers, with as much room as there are items ----

template <class K, class V>
struct Entry {
  K key;
  V value;
};
struct Nothing {};  // the value where only keys are sorted

// Merges the sorted halves of from[0, n) into `to`.
template <class T, class Op>
void merge_halves(const T* from, T* to, Index half, Index n, Op& less) {
  for (Index a = 0, b = half, i = 0; i < n; ++i) {
    const bool second = a == half || (b < n && less(from[b], from[a]));
    to[i] = from[second ? b++ : a++];
  }
}
// Sorts items[0, n) in place, keeping the order of equal ones. room: for n items.
template <class T, class Op>
void merge_sort(T* items, T* room, Index n, Op& less) {
  if (n <= 16) {
    for (Index i = 1; i < n; ++i) {
      T item = items[i];
      Index k = i;
      for (; k > 0 && less(item, items[k - 1]); --k) items[k] = items[k - 1];
      items[k] = item;
    }
    return;
  }
  const Index half = n / 2;
  merge_sort(items, room, half, less);
  merge_sort(items + half, room + half, n - half, less);
  merge_halves(items, room, half, n, less);
  for (Index i = 0; i < n; ++i) items[i] = room[i];
}

// Sorts n keys with their values from `keys` and `values` to `keys_out` and `values_out`. room: for 2 n entries.
template <class K, class V, class Keys, class Values, class KeysOut, class ValuesOut, class Op>
void sort_entries(Entry<K, V>* room, Keys keys, Values values, KeysOut keys_out, ValuesOut values_out, Index n,
                  Op less) {
  for (Index i = 0; i < n; ++i) {
    room[i].key = keys[i];
    room[i].value = values[i];
  }
  auto by_key = [&less](const Entry<K, V>& a, const Entry<K, V>& b) { return less(a.key, b.key); };
  merge_sort(room, room + n, n, by_key);
  for (Index i = 0; i < n; ++i) {
    keys_out[i] = room[i].key;
    values_out[i] = room[i].value;
  }
}
template <class K, class Keys, class KeysOut, class Op>
void sort_keys(K* room, Keys keys, KeysOut keys_out, Index n, Op less) {
  for (Index i = 0; i < n; ++i) room[i] = keys[i];
  merge_sort(room, room + n, n, less);
  for (Index i = 0; i < n; ++i) keys_out[i] = room[i];
}

}  // namespace simt
