// Jumps in the sequences of cuRAND's linear generators. A step is a product with a matrix, so a jump of 2^k steps is a
// product with that matrix's power. The powers are computed once, when a program first jumps.
#pragma once

#include <simt/probe.h>

namespace simt {

// ---- XORWOW: five words, linear over single bits ----

struct XorwowWords {
  unsigned v[5];
};

struct XorwowJumps {
  static constexpr int bits = 160, sequence = 67;   // a subsequence has 2^67 numbers
  static constexpr int powers = sequence + 64;      // for jumps of up to 2^64 - 1 subsequences
  XorwowWords power[powers][bits];                  // [k][i]: where 2^k steps take the state with bit i alone

  SIMT_NO_PROBES static XorwowWords step(XorwowWords from) {
    const unsigned t = from.v[0] ^ from.v[0] >> 2, last = from.v[4];
    return {{from.v[1], from.v[2], from.v[3], last, last ^ last << 4 ^ t ^ t << 1}};
  }
  SIMT_NO_PROBES static XorwowWords times(const XorwowWords* matrix, XorwowWords from) {
    XorwowWords to = {};
    for (int word = 0; word < 5; ++word)
      for (unsigned left = from.v[word]; left; left &= left - 1) {
        const XorwowWords& row = matrix[32 * word + __builtin_ctz(left)];
        for (int i = 0; i < 5; ++i) to.v[i] ^= row.v[i];
      }
    return to;
  }
  SIMT_NO_PROBES XorwowJumps() {
    for (int i = 0; i < bits; ++i) {
      XorwowWords one = {};
      one.v[i / 32] = 1u << i % 32;
      power[0][i] = step(one);
    }
    for (int k = 1; k < powers; ++k)
      for (int i = 0; i < bits; ++i) power[k][i] = times(power[k - 1], power[k - 1][i]);
  }
};

// Jumps count * 2^unit steps.
SIMT_APART inline XorwowWords jump_xorwow(XorwowWords from, unsigned long long count, int unit) {
  if (!count) return from;
  static const XorwowJumps jumps;
  for (int k = unit; count; ++k, count >>= 1)
    if (count & 1) from = XorwowJumps::times(jumps.power[k], from);
  return from;
}

// ---- MRG32k3a: two sequences of three numbers, each linear modulo a prime ----

struct MrgNumbers {
  unsigned s[2][3];
};

struct MrgJumps {
  static constexpr unsigned modulus[2] = {4294967087u, 4294944443u};
  static constexpr int subsequence = 76, sequence = 127;  // as powers of two of steps
  static constexpr int powers = sequence + 64;
  struct Matrix {
    unsigned m[3][3];
  };
  Matrix power[powers][2];

  SIMT_NO_PROBES static unsigned product(const unsigned* row, unsigned x, unsigned y, unsigned z, unsigned m) {
    const unsigned long long a = (unsigned long long)row[0] * x % m, b = (unsigned long long)row[1] * y % m,
                             c = (unsigned long long)row[2] * z % m;
    return (unsigned)((a + b + c) % m);
  }
  SIMT_NO_PROBES MrgJumps() {
    // The rows shift the older two numbers down and add the new one.
    power[0][0] = {{{0, 1, 0}, {0, 0, 1}, {modulus[0] - 810728u, 1403580u, 0}}};
    power[0][1] = {{{0, 1, 0}, {0, 0, 1}, {modulus[1] - 1370589u, 0, 527612u}}};
    for (int k = 1; k < powers; ++k)
      for (int which = 0; which < 2; ++which)
        for (int i = 0; i < 9; ++i) {
          const auto& half = power[k - 1][which].m;
          const int column = i % 3;
          power[k][which].m[i / 3][column] =
              product(half[i / 3], half[0][column], half[1][column], half[2][column], modulus[which]);
        }
  }
};

SIMT_APART inline MrgNumbers jump_mrg(MrgNumbers from, unsigned long long count, int unit) {
  if (!count) return from;
  static const MrgJumps jumps;
  for (int k = unit; count; ++k, count >>= 1) {
    if (!(count & 1)) continue;
    for (int which = 0; which < 2; ++which) {
      unsigned* s = from.s[which];
      const unsigned x = s[0], y = s[1], z = s[2];
      for (int i = 0; i < 3; ++i)
        s[i] = MrgJumps::product(jumps.power[k][which].m[i], x, y, z, MrgJumps::modulus[which]);
    }
  }
  return from;
}

}  // namespace simt
