// Precompiled for a program's units: CUDA's names, which nvcc also provides to every .cu file, and <iostream>, which
// most use. No more: names of other headers (std::count, std::reduce, …) could conflict with the program's own.
#pragma once

// A program may define lerp(), as NVIDIA's helper_math.h does: C++20's functions stay in std alone.
#define lerp simt_lerp
#include <math.h>
#undef lerp
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace std {
template <class A, class B, class C>
constexpr auto lerp(A a, B b, C t) {
  return simt_lerp(a, b, t);
}
}  // namespace std

#include <simt/cuda.h>
