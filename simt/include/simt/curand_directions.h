// Direction vectors of Sobol's sequence on the host, continued from the table of initial numbers when a program first
// asks for them.
#pragma once

#include <stdlib.h>

#include <simt/curand_sobol_table.h>
#include <simt/probe.h>

namespace simt {
inline constexpr unsigned library_dimensions = 20000;  // those that cuRAND has, of which simt has the first ones

struct SobolTableReader {
  int at = 0;
  // Returns the next bits, the first of them as the highest.
  SIMT_NO_PROBES unsigned take(int count) {
    unsigned bits = 0;
    for (; count; --count, ++at) {
      const char digit = sobol_table[at / 4];
      bits = bits << 1 | ((unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10) >> (3 - at % 4) & 1);
    }
    return bits;
  }
};

// Writes a dimension's vectors: the k-th, counted from 1, is the number m_k of k bits, shifted to the word's highest bits.
template <class Word>
SIMT_NO_PROBES void read_dimension(SobolTableReader* table, Word* vectors) {
  constexpr int bits = 8 * sizeof(Word);
  Word m[bits + 1];
  const int degree = (int)table->take(4);
  const unsigned coefficients = table->take(degree - 1);
  for (int k = 1; k <= degree; ++k) m[k] = table->take(k - 1) << 1 | 1;
  for (int k = degree + 1; k <= bits; ++k) {
    m[k] = m[k - degree] ^ m[k - degree] << degree;
    for (int i = 1; i < degree; ++i)
      if (coefficients >> (degree - 1 - i) & 1) m[k] ^= m[k - i] << i;
  }
  for (int k = 1; k <= bits; ++k) vectors[k - 1] = m[k] << (bits - k);
}

// Returns a vector for each dimension and bit. Those of dimensions that simt lacks are 0, which curand_init refuses.
template <class Word>
SIMT_NO_PROBES Word* make_directions() {
  constexpr int bits = 8 * sizeof(Word);
  Word* all = (Word*)calloc(library_dimensions, sizeof(Word) * bits);
  if (!all) return nullptr;
  for (int k = 1; k <= bits; ++k) all[k - 1] = (Word)1 << (bits - k);
  SobolTableReader table;
  for (int dimension = 1; dimension < sobol_dimensions; ++dimension) read_dimension(&table, all + dimension * bits);
  return all;
}
template <class Word>
Word* directions() {
  static Word* const all = make_directions<Word>();
  return all;
}
}  // namespace simt
