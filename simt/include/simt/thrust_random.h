// thrust's random numbers: linear congruential engines and the uniform and normal distributions.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include <simt/math.h>

namespace thrust {
namespace random {

// x -> (a x + c) mod m
template <class T, T a, T c, T m>
class linear_congruential_engine {
 public:
  using result_type = T;
  static constexpr T multiplier = a, increment = c, modulus = m, default_seed = 1;
  static constexpr T min = c == 0 ? 1 : 0, max = m - 1;
  constexpr explicit linear_congruential_engine(T s = default_seed) { seed(s); }
  constexpr void seed(T s = default_seed) { x_ = c == 0 && s % m == 0 ? 1 : s % m; }
  constexpr T operator()() {
    x_ = (T)(((unsigned __int128)a * x_ + c) % m);
    return x_;
  }
  // n steps at once: the powers of one step by squares.
  constexpr void discard(unsigned long long n) {
    unsigned __int128 factor = a, offset = c, all_factor = 1, all_offset = 0;
    for (; n; n /= 2) {
      if (n % 2) {
        all_factor = all_factor * factor % m;
        all_offset = (all_offset * factor + offset) % m;
      }
      offset = (offset * factor + offset) % m;
      factor = factor * factor % m;
    }
    x_ = (T)((all_factor * x_ + all_offset) % m);
  }
  friend constexpr bool operator==(const linear_congruential_engine& a_, const linear_congruential_engine& b_) {
    return a_.x_ == b_.x_;
  }

 private:
  T x_ = 1;
};
using minstd_rand0 = linear_congruential_engine<std::uint32_t, 16807, 0, 2147483647>;
using minstd_rand = linear_congruential_engine<std::uint32_t, 48271, 0, 2147483647>;
using default_random_engine = minstd_rand;

template <class Real = double>
class uniform_real_distribution {
 public:
  using result_type = Real;
  explicit uniform_real_distribution(Real a = 0, Real b = 1) : a_(a), b_(b) {}
  template <class Engine> Real operator()(Engine& engine) const {
    const Real u = (Real)(engine() - Engine::min) / ((Real)1 + (Real)(Engine::max - Engine::min));
    return std::lerp(a_, b_, u);
  }
  Real a() const { return a_; }
  Real b() const { return b_; }
  Real min() const { return a_; }
  Real max() const { return b_; }
  void reset() {}

 private:
  Real a_, b_;
};
// The fraction is cut off, as by the library: of negative numbers the least is rare.
template <class Int = int>
class uniform_int_distribution {
 public:
  using result_type = Int;
  explicit uniform_int_distribution(Int a = 0, Int b = std::numeric_limits<Int>::max()) : a_(a), b_(b) {}
  template <class Engine> Int operator()(Engine& engine) const {
    return (Int)uniform_real_distribution<double>((double)a_, (double)b_ + 1)(engine);
  }
  Int a() const { return a_; }
  Int b() const { return b_; }
  Int min() const { return a_; }
  Int max() const { return b_; }
  void reset() {}

 private:
  Int a_, b_;
};
// By the inverse of the normal distribution. The numbers are not the library's, bit for bit.
template <class Real = double>
class normal_distribution {
 public:
  using result_type = Real;
  explicit normal_distribution(Real mean = 0, Real stddev = 1) : mean_(mean), stddev_(stddev) {}
  template <class Engine> Real operator()(Engine& engine) const {
    const double u = ((double)(engine() - Engine::min) + 0.5) / (1.0 + (double)(Engine::max - Engine::min));
    return mean_ + stddev_ * (Real)::normcdfinv(u);
  }
  Real mean() const { return mean_; }
  Real stddev() const { return stddev_; }
  void reset() {}

 private:
  Real mean_, stddev_;
};

}  // namespace random

using random::default_random_engine;
using random::linear_congruential_engine;
using random::minstd_rand;
using random::minstd_rand0;
using random::normal_distribution;
using random::uniform_int_distribution;
using random::uniform_real_distribution;

}  // namespace thrust
