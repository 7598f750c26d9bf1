// Complex numbers as pairs, under cuComplex.h's names.
#pragma once
#include <simt/types.h>

#include <cmath>

namespace simt {

// Scaled by the parts of the divisor, so that no square overflows.
template <class C, class T>
inline C divide_complex(C a, C b) {
  const T scale = T(1) / (std::fabs(b.x) + std::fabs(b.y));
  const T ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;
  const T inverse = T(1) / (bx * bx + by * by);
  return {(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};
}

template <class C, class T>
inline T length_of_complex(C a) {
  const T x = std::fabs(a.x), y = std::fabs(a.y), large = std::fmax(x, y), small = std::fmin(x, y);
  if (large == 0 || std::isinf(large) || std::isnan(x + y)) return x + y;
  const T ratio = small / large;
  return large * std::sqrt(T(1) + ratio * ratio);
}

}  // namespace simt

#define SIMT_COMPLEX(C, T, pair, f)                                                       \
  typedef pair C;                                                                         \
  inline T cuCreal##f(C a) { return a.x; }                                                \
  inline T cuCimag##f(C a) { return a.y; }                                                \
  inline C make_##C(T real, T imaginary) { return {real, imaginary}; }                    \
  inline C cuConj##f(C a) { return {a.x, -a.y}; }                                         \
  inline C cuCadd##f(C a, C b) { return {a.x + b.x, a.y + b.y}; }                         \
  inline C cuCsub##f(C a, C b) { return {a.x - b.x, a.y - b.y}; }                         \
  inline C cuCmul##f(C a, C b) { return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; } \
  inline C cuCdiv##f(C a, C b) { return simt::divide_complex<C, T>(a, b); }               \
  inline T cuCabs##f(C a) { return simt::length_of_complex<C, T>(a); }                    \
  inline C cuCfma##f(C a, C b, C c) { return cuCadd##f(cuCmul##f(a, b), c); }
SIMT_COMPLEX(cuFloatComplex, float, float2, f)
SIMT_COMPLEX(cuDoubleComplex, double, double2, )
#undef SIMT_COMPLEX

typedef cuFloatComplex cuComplex;
inline cuComplex make_cuComplex(float real, float imaginary) { return {real, imaginary}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) { return {a.x, a.y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
