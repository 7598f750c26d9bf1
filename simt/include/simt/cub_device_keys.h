// The order of cub's radix sorts: keys as unsigned integers of which some bits count.
#pragma once

#include <cstring>

#include <simt/cub_device_call.h>

namespace cub::detail {

template <std::size_t bytes> struct Bits;
template <> struct Bits<1> {
  using type = std::uint8_t;
};
template <> struct Bits<2> {
  using type = std::uint16_t;
};
template <> struct Bits<4> {
  using type = std::uint32_t;
};
template <> struct Bits<8> {
  using type = std::uint64_t;
};
template <> struct Bits<16> {
  using type = unsigned __int128;
};

// Returns the unsigned integer whose order is that of the keys. -0.0 is equal to 0.0.
template <class K>
typename Bits<sizeof(K)>::type order_bits(const K& key) {
  using U = typename Bits<sizeof(K)>::type;
  constexpr bool is_integer =
      std::is_integral_v<K> || std::is_same_v<K, __int128> || std::is_same_v<K, unsigned __int128>;
  constexpr U sign = (U)((U)1 << (8 * sizeof(K) - 1));
  U bits;
  __builtin_memcpy(&bits, &key, sizeof bits);
  if constexpr (is_integer) {
    if constexpr ((K)-1 < (K)0) bits ^= sign;
  } else {  // a float, half or bfloat16
    if (bits == sign) bits = 0;
    bits = (U)(bits & sign ? ~bits : bits | sign);
  }
  return bits;
}

// Compares the bits from `first` up to, not including, `last`.
template <class K, bool descending>
struct RadixLess {
  int first, last;
  bool operator()(const K& a, const K& b) const { return descending ? part(b) < part(a) : part(a) < part(b); }

 private:
  auto part(const K& key) const {
    using U = typename Bits<sizeof(K)>::type;
    const int width = last - first;
    if (width <= 0) return (U)0;
    const U bits = (U)(order_bits(key) >> first);
    return width >= (int)(8 * sizeof(K)) ? bits : (U)(bits & (((U)1 << width) - 1));
  }
};

struct KeyLess {
  template <class T> bool operator()(const T& a, const T& b) const { return a < b; }
};
struct KeyGreater {
  template <class T> bool operator()(const T& a, const T& b) const { return b < a; }
};

// Room for a sort of n entries, which lives as long as the call may run.
template <class T>
T* own_room(DeviceCall& call, simt::Index n) {
  auto room = simt::make_scratch<T>(2 * (std::size_t)(n > 0 ? n : 0));
  call.owner = room;
  return room->pointer();
}

// Sorts one range or, with segments, each range [begin[s], end[s]).
template <class Keys, class KeysOut, class Op>
cudaError_t sort_keys(const DeviceCall& call, std::size_t needed, Keys in, KeysOut out, simt::Index n, Op less) {
  using K = simt::value_of<Keys>;
  cudaError_t error;
  if (is_over(call, needed, error)) return error;
  DeviceCall own = call;
  K* const room = own_room<K>(own, n);
  auto body = [=] { simt::sort_keys(room, in, out, n, less); };
  return run(own, needed, body, in, out, room);
}
template <class Keys, class Values, class KeysOut, class ValuesOut, class Op>
cudaError_t sort_pairs(const DeviceCall& call, std::size_t needed, Keys in, Values values_in, KeysOut out,
                       ValuesOut values_out, simt::Index n, Op less) {
  using E = simt::Entry<simt::value_of<Keys>, simt::value_of<Values>>;
  cudaError_t error;
  if (is_over(call, needed, error)) return error;
  DeviceCall own = call;
  E* const room = own_room<E>(own, n);
  auto body = [=] { simt::sort_entries(room, in, values_in, out, values_out, n, less); };
  return run(own, needed, body, in, out, values_in, values_out, room);
}
template <class Keys, class KeysOut, class Begin, class End, class Op>
cudaError_t sort_key_segments(const DeviceCall& call, std::size_t needed, Keys in, KeysOut out, simt::Index n,
                              simt::Index segments, Begin begin, End end, Op less) {
  using K = simt::value_of<Keys>;
  cudaError_t error;
  if (is_over(call, needed, error)) return error;
  DeviceCall own = call;
  K* const room = own_room<K>(own, n);
  auto body = [=] {
    for (simt::Index s = 0; s < segments; ++s) {
      const simt::Index from = (simt::Index)begin[s], to = (simt::Index)end[s];
      if (from < to) simt::sort_keys(room, in + from, out + from, to - from, less);
    }
  };
  return run(own, needed, body, in, out, begin, end, room);
}
template <class Keys, class Values, class KeysOut, class ValuesOut, class Begin, class End, class Op>
cudaError_t sort_pair_segments(const DeviceCall& call, std::size_t needed, Keys in, Values values_in, KeysOut out,
                               ValuesOut values_out, simt::Index n, simt::Index segments, Begin begin, End end,
                               Op less) {
  using E = simt::Entry<simt::value_of<Keys>, simt::value_of<Values>>;
  cudaError_t error;
  if (is_over(call, needed, error)) return error;
  DeviceCall own = call;
  E* const room = own_room<E>(own, n);
  auto body = [=] {
    for (simt::Index s = 0; s < segments; ++s) {
      const simt::Index from = (simt::Index)begin[s], to = (simt::Index)end[s];
      if (from < to)
        simt::sort_entries(room, in + from, values_in + from, out + from, values_out + from, to - from, less);
    }
  };
  return run(own, needed, body, in, out, values_in, values_out, begin, end, room);
}

}  // namespace cub::detail
