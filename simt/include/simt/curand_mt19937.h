// Matsumoto and Nishimura's MT19937 (1998) in the order of cuRAND's host functions: 8,192 lanes, each 2^2048 numbers after
// the one before, give eight results in turn. The order was read off curandCreateGeneratorHost.
#pragma once

#include <string.h>

#include <simt/curand_quasi_values.h>

namespace simt {

struct MtState {
  static constexpr int words = 624, middle = 397;
  static constexpr unsigned matrix = 0x9908b0df;  // the last row of the recurrence's matrix
  unsigned word[words];

  SIMT_NO_PROBES static unsigned next(unsigned word, unsigned after, unsigned further) {
    const unsigned joined = (word & 0x80000000u) | (after & 0x7fffffffu);
    return further ^ joined >> 1 ^ (joined & 1 ? matrix : 0);
  }
  SIMT_NO_PROBES void seed(unsigned number) {
    word[0] = number;
    for (int i = 1; i < words; ++i) word[i] = 1812433253u * (word[i - 1] ^ word[i - 1] >> 30) + (unsigned)i;
  }
  SIMT_NO_PROBES void twist() {
    for (int i = 0; i < words; ++i) word[i] = next(word[i], word[(i + 1) % words], word[(i + middle) % words]);
  }
  SIMT_NO_PROBES unsigned output(int i) const {
    unsigned y = word[i];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
  }
};

// The jump from a lane to the next: x^(2^2048) modulo the recurrence's characteristic polynomial over GF(2), applied to a
// state as Haramoto, Matsumoto, Nishimura, Panneton and L'Ecuyer describe (2008), a window of bits at a time.
struct MtJump {
  static constexpr int degree = 19937, limbs = degree / 64 + 1, squarings = 2048;
  static constexpr int window = 7, windows = degree / window + 1;
  int terms[256], term_count = 0;  // the characteristic polynomial's exponents below its degree
  unsigned char bits[windows];  // of the power, the lowest window first

  // From Matsumoto and Nishimura's formula: with T = t^624 + t^397, S = t^623 + t^396 and the bits a_i of the matrix's last
  // row, the polynomial is T S^31 + (the sum over i < 31 of a_i T S^(30 - i)) + a_31.
  SIMT_NO_PROBES void find_terms() {
    static bool odd[degree + 1];
    for (int i = -1; i < 31; ++i) {
      if (i >= 0 && !(MtState::matrix >> i & 1)) continue;
      const int power = 30 - i;
      for (int k = 0; k <= power; ++k)
        if (!(k & (power - k))) {  // an odd binomial coefficient
          const int exponent = (MtState::words - 1) * k + (MtState::middle - 1) * (power - k);
          odd[exponent + MtState::words] ^= true;
          odd[exponent + MtState::middle] ^= true;
        }
    }
    odd[0] ^= true;
    for (int i = 0; i < degree; ++i)
      if (odd[i]) terms[term_count++] = i;
  }
  SIMT_NO_PROBES static unsigned long long spread(unsigned half) {  // a zero after each bit
    unsigned long long x = half;
    x = (x | x << 16) & 0x0000ffff0000ffffull;
    x = (x | x << 8) & 0x00ff00ff00ff00ffull;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0full;
    x = (x | x << 2) & 0x3333333333333333ull;
    return (x | x << 1) & 0x5555555555555555ull;
  }
  SIMT_NO_PROBES void square(unsigned long long* power) const {
    unsigned long long wide[2 * limbs];
    for (int i = 0; i < limbs; ++i) {
      wide[2 * i] = spread((unsigned)power[i]);
      wide[2 * i + 1] = spread((unsigned)(power[i] >> 32));
    }
    // The terms lie over 64 below the degree, so a limb is reduced at once.
    for (int i = 2 * limbs - 1; i >= limbs - 1; --i) {
      const int kept = i == limbs - 1 ? degree % 64 : 0;
      const unsigned long long high = wide[i] >> kept;
      wide[i] ^= high << kept;
      for (int k = 0; high && k < term_count; ++k) {
        const int at = 64 * i + kept - degree + terms[k], shift = at % 64;
        wide[at / 64] ^= high << shift;
        if (shift) wide[at / 64 + 1] ^= high >> (64 - shift);
      }
    }
    memcpy(power, wide, limbs * sizeof *power);
  }
  SIMT_NO_PROBES MtJump() {
    find_terms();
    unsigned long long power[limbs + 1] = {2};
    for (int i = 0; i < squarings; ++i) square(power);
    for (int k = 0; k < windows; ++k) {
      const int at = k * window;
      const unsigned long long low = power[at / 64] >> at % 64;
      const unsigned long long high = at % 64 ? power[at / 64 + 1] << (64 - at % 64) : 0;
      bits[k] = (low | high) & ((1 << window) - 1);
    }
  }
  SIMT_NO_PROBES static void add(unsigned* __restrict to, const unsigned* __restrict from) {
    for (int i = 0; i < MtState::words; ++i) to[i] ^= from[i];
  }
  // Horner's scheme: the highest window's product, then for each window below `window` steps and its product.
  SIMT_APART void apply(MtState* state) const {
    const int words = MtState::words;
    MtState* products = new MtState[1 << window]();
    unsigned* steps = new unsigned[words + window * windows]();
    memcpy(steps, state->word, sizeof state->word);
    for (int i = 0; i < window; ++i)
      steps[words + i] = MtState::next(steps[i], steps[i + 1], steps[i + MtState::middle]);
    for (int k = 1; k < 1 << window; ++k) {
      products[k] = products[k & (k - 1)];
      add(products[k].word, steps + __builtin_ctz((unsigned)k));
    }
    memcpy(steps, products[bits[windows - 1]].word, sizeof state->word);
    unsigned* at = steps;
    for (int k = windows - 2; k >= 0; --k) {
      for (int i = 0; i < window; ++i, ++at) at[words] = MtState::next(at[0], at[1], at[MtState::middle]);
      add(at, products[bits[k]].word);
    }
    memcpy(state->word, at, sizeof state->word);
    delete[] steps;
    delete[] products;
  }
};

// A host generator. Lanes get their states when their turn first comes.
struct Mt19937 {
  static constexpr unsigned lanes = 8192, group = 8;  // a lane gives `group` results in turn
  static constexpr unsigned turns = MtState::words / group;  // after which a lane's state is used up
  MtState* states = nullptr;
  MtState next = {};  // of the first lane that has no state yet, before its first number
  unsigned ready = 0;
  unsigned long long position = 0;

  void begin(unsigned seed) {
    delete[] states;
    states = nullptr;
    next.seed(seed);
    ready = 0;
    position = 0;
  }
  // Returns which of its 624 numbers a lane gives as result i of a turn. Of the first turn the results lie far apart, and
  // those of seven turns each fill a run of 56 numbers between them.
  static int find_number(int turn, int i) {
    static constexpr short first_turn[group] = {0, 113, 170, 283, 340, 397, 510, 567};
    static constexpr short runs[] = {1, 57, 114, 171, 227, 284, 341, 398, 454, 511, 568};
    constexpr int turns_a_run = 7;
    return turn == 0 ? first_turn[i] : runs[(turn - 1) / turns_a_run] + (turn - 1) % turns_a_run + turns_a_run * i;
  }
  SIMT_NO_PROBES unsigned take() {
    if (!states) states = new MtState[lanes];
    const unsigned long long turn = position / (lanes * group);
    const unsigned lane = (unsigned)(position / group % lanes), i = (unsigned)(position % group);
    if (ready <= lane) add_lane();
    if (turn && turn % turns == 0 && i == 0) states[lane].twist();
    ++position;
    return states[lane].output(find_number((int)(turn % turns), (int)i));
  }
  friend unsigned curand(Mt19937* generator) { return generator->take(); }
  friend float curand_uniform(Mt19937* generator) { return (float)to_middle(generator->take()); }
  friend double curand_uniform_double(Mt19937* generator) { return to_middle(generator->take()); }
  void add_lane() {
    static const MtJump* const jump = new MtJump;
    states[ready] = next;
    states[ready++].twist();
    jump->apply(&next);
  }
};
template <> inline constexpr bool is_single<Mt19937> = true;
}  // namespace simt
