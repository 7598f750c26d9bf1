// Rounding to 16-bit floating point numbers, whatever the format and the direction.
#pragma once

#include <simt/hints.h>
#include <simt/rounding.h>

namespace simt {

// Whether H is torch's type of the format of T, such as c10::Half for __half. torch_cuda.h specializes it.
template <class H, class T> inline constexpr bool is_torchs_type = false;
template <class H, class T>
concept TorchsTypeFor = is_torchs_type<H, T>;

// Marks the constructor from a number's bits. Braces alone do not make one.
struct OfBits {
  explicit OfBits() = default;
};

enum class Round { nearest, to_zero, up, down };

// The bits of `value` in a 16-bit format with `digits` significant bits, whose least normal number is 2^least.
// Exact: one rounding. NaN becomes 0x7fff, as on the GPU.
SIMT_COUNTED unsigned short narrowed(double value, int digits, int least, Round round) {
  if (value != value) return 0x7fff;
  const unsigned sign = __builtin_signbit(value) ? 0x8000u : 0;
  const unsigned infinity = 0x8000u - (1u << (digits - 1));
  const bool inwards = round == Round::to_zero || round == (sign ? Round::up : Round::down);
  const double size = __builtin_fabs(value);
  if (size == __builtin_inf()) return (unsigned short)(sign | infinity);
  const int exponent = (int)(__double_as_longlong(size) >> 52) - 1023;
  if (exponent > 1 - least) return (unsigned short)(sign | (infinity - inwards));
  const int step = (exponent > least ? exponent : least) - (digits - 1);      // the result is a multiple of 2^step
  const double scaled = size * __longlong_as_double((long long)(1023 - step) << 52);
  unsigned multiple = (unsigned)scaled;
  const double rest = scaled - multiple;
  if (round == Round::nearest)
    multiple += rest > 0.5 || (rest == 0.5 && (multiple & 1));
  else
    multiple += rest > 0 && !inwards;
  // A carry out of the significand moves the exponent up by itself.
  const unsigned bits = ((unsigned)(step + digits - 1 - least) << (digits - 1)) + multiple;
  return (unsigned short)(sign | (bits < infinity ? bits : infinity));
}

// a + b with the last bit set where it is inexact ("round to odd"): rounding it again to few digits gives what
// rounding the exact sum would.
SIMT_COUNTED double odd_sum(double a, double b) {
  const double sum = a + b;
  if (!(__builtin_fabs(sum) < __builtin_inf())) return sum;
  const double part = sum - a, error = (a - (sum - part)) + (b - part);       // Knuth's two-sum
  const long long bits = __double_as_longlong(sum);
  if (error == 0 || bits & 1) return sum;
  return __longlong_as_double(bits + ((error > 0) == (sum > 0) ? 1 : -1));
}

// The same for a conversion: what a double can't hold of an integer stays as one low bit.
inline double sticky(unsigned long long i) {
  return i >> 53 ? (double)((i >> 11 << 11) | ((i & 0x7ff) ? 0x800ull : 0)) : (double)i;
}
inline double sticky(long long i) { return i < 0 ? -sticky(0 - (unsigned long long)i) : sticky((unsigned long long)i); }

// Cut to an integer between low and high; NaN gives 0.
inline int integer(float f, int low, int high) {
  return f != f ? 0 : f <= (float)low ? low : f >= (float)high ? high : (int)f;
}

}  // namespace simt
