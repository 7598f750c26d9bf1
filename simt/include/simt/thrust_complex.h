// thrust::complex, which is the C++ library's.
#pragma once

#include <complex>

namespace thrust {

template <class T> using complex = std::complex<T>;
using std::abs;
using std::arg;
using std::conj;
using std::cos;
using std::exp;
using std::log;
using std::norm;
using std::polar;
using std::pow;
using std::proj;
using std::sin;
using std::sqrt;
using std::tan;

}  // namespace thrust
