// The order in which cuRAND's host functions fill an array. Lanes, each with a subsequence of its own, give results in
// turn. Their number and turns are those that the library's generators on the host show, which are documented to give
// what its generators on a GPU give.
#pragma once

#include <string.h>

#include <simt/curand_directions.h>
#include <simt/curand_mt19937.h>
#include <simt/curand_quasi_values.h>

namespace simt {

inline constexpr unsigned philox_group = 4;  // results that a lane of Philox gives in turn; other lanes give one or two

template <class S>
struct Lanes {
  S* states = nullptr;
  S next = {};  // of the first lane that has no state yet
  unsigned ready = 0, count = 0;
  unsigned long long start = 0, position = 0;  // turns before the first one, and before the next one

  void begin(unsigned long long seed, unsigned long long turns, unsigned lanes) {
    delete[] states;
    states = new S[lanes];
    count = lanes;
    ready = 0;
    start = position = turns;
    curand_init(seed, 0, 0, &next);
  }
  S* take() {
    const unsigned lane = (unsigned)(position++ % count);
    for (; ready <= lane; ++ready) {
      states[ready] = next;
      const unsigned long long rounds = start / count + (ready < start % count);
      skipahead(is_philox<S> ? rounds * philox_group : rounds, &states[ready]);
      if constexpr (is_mrg<S>)
        skipahead_subsequence(1, &next);
      else
        skipahead_sequence(1, &next);
    }
    return &states[lane];
  }
};

// Philox's lanes, of which a call may use a part of the last group: the next call computes that group again, in its own
// way, and gives the rest.
struct PhiloxLanes : Lanes<curandStatePhilox4_32_10> {
  unsigned used = 0;  // results of the next group that are given

  template <class F, class T>
  unsigned take_group(T* out, unsigned long long most, const F& make) {
    curandStatePhilox4_32_10* lane = take();
    curandStatePhilox4_32_10 state = *lane;
    T four[philox_group];
    make.four(&state, four);
    unsigned given = 0;
    for (; used < philox_group && given < most; ++used) out[given++] = four[used];
    if (used < philox_group) {
      --position;
    } else {
      *lane = state;
      used = 0;
    }
    return given;
  }
};

// Sobol's points: the results of a call are those of the first dimension, then those of the second, and so on.
struct SobolPoints {
  unsigned dimensions = 1;
  unsigned long long position = 0;  // the index of the next call's first point
  size_t points = 0, given = 0;  // points of this call, and results given

  void begin_call(size_t results) {
    points = results / dimensions;
    given = 0;
  }
  void end_call() { position += points; }
  template <class Word, class T, class F>
  void fill(T* out, size_t n, const F& make) {
    SobolState<Word, false> state;
    for (size_t i = 0; i < n; ++i, ++given) {
      const size_t point = given % points;
      if (i == 0 || point == 0)
        start_sobol(&state, directions<Word>() + given / points * state.bits, Word(0), (Word)(position + point),
                    __LINE__);
      out[i] = make.one(&state);
    }
  }
};

// Each functor has one() for a result of a lane of XORWOW or MRG32k3a, or both() for two, and four() for Philox's; one()
// for any result of the other generators.
template <class F, class S, class T>
void fill_from(Lanes<S>& lanes, T* out, size_t n, const F& make) {
  if constexpr (F::is_pair) {
    for (size_t i = 0; i < n; i += 2) {
      const auto pair = make.both(lanes.take());
      out[i] = pair.x;
      out[i + 1] = pair.y;
    }
  } else {
    for (size_t i = 0; i < n; ++i) out[i] = make.one(lanes.take());
  }
}
template <class F, class T>
void fill_from(PhiloxLanes& lanes, T* out, size_t n, const F& make) {
  for (size_t i = 0; i < n;) i += lanes.take_group(out + i, n - i, make);
}

// ---- what each function makes ----

template <class V, class T, class F>
SIMT_INLINE void spread(V v, T* four, F of) {
  four[0] = of(v.x), four[1] = of(v.y), four[2] = of(v.z), four[3] = of(v.w);
}
template <class V, class T>
SIMT_INLINE void spread(V v, T* four) {
  spread(v, four, [](T x) { return x; });
}
struct MakeBits {
  static constexpr bool is_pair = false;
  template <class S> unsigned one(S* state) const { return curand(state); }
  void four(curandStatePhilox4_32_10* state, unsigned* out) const { spread(curand4(state), out); }
};
struct MakeLongBits {
  static constexpr bool is_pair = false;
  template <class S> unsigned long long one(S* state) const { return curand(state); }
  void four(curandStatePhilox4_32_10*, unsigned long long*) const {}  // only 64-bit generators give such results
};
struct MakeUniform {
  static constexpr bool is_pair = false;
  template <class S> float one(S* state) const { return curand_uniform(state); }
  void four(curandStatePhilox4_32_10* state, float* out) const { spread(curand_uniform4(state), out); }
};
struct MakeUniformDouble {
  static constexpr bool is_pair = false;
  template <class S> double one(S* state) const { return curand_uniform_double(state); }
  void four(curandStatePhilox4_32_10* state, double* out) const { spread(curand_uniform4_double(state), out); }
};
template <class T>
SIMT_INLINE T scale(T x, T mean, T deviation) {
  if constexpr (sizeof(T) == 4)
    return fmaf(x, deviation, mean);
  else
    return fma(x, deviation, mean);
}
template <bool is_log>
struct MakeNormal {
  static constexpr bool is_pair = true;
  float mean, deviation;
  template <SingleState S> float one(S* state) const { return finish(curand_normal(state)); }
  float finish(float x) const { return is_log ? to_log_normal(x, mean, deviation) : scale(x, mean, deviation); }
  template <class S> float2 both(S* state) const {
    const float2 x = curand_normal2(state);
    return {finish(x.x), finish(x.y)};
  }
  void four(curandStatePhilox4_32_10* state, float* out) const {
    spread(curand_normal4(state), out, [this](float x) { return finish(x); });
  }
};
template <bool is_log>
struct MakeNormalDouble {
  static constexpr bool is_pair = true;
  double mean, deviation;
  template <SingleState S> double one(S* state) const { return finish(curand_normal_double(state)); }
  double finish(double x) const { return is_log ? to_log_normal(x, mean, deviation) : scale(x, mean, deviation); }
  template <class S> double2 both(S* state) const {
    const double2 x = curand_normal2_double(state);
    return {finish(x.x), finish(x.y)};
  }
  void four(curandStatePhilox4_32_10* state, double* out) const {
    spread(curand_normal4_double(state), out, [this](double x) { return finish(x); });
  }
};
// Large ones are rounded normal numbers. For small ones the library has another method: from one number per result, too,
// but with other results.
struct MakePoisson {
  static constexpr bool is_pair = false;
  static constexpr double least_normal = 2000;
  double lambda;
  double* at_most = nullptr;  // [k]: the probability of k or fewer
  unsigned most = 0;

  explicit MakePoisson(double lambda) : lambda(lambda) {
    if (lambda >= least_normal) return;
    most = (unsigned)(lambda + 12 * sqrt(lambda) + 30);  // more occur less often than once in 2^32 results
    at_most = new double[most];
    double sum = 0;
    for (unsigned k = 0; k < most; ++k) at_most[k] = sum += exp(k * log(lambda) - lambda - lgamma(k + 1.0));
  }
  MakePoisson(const MakePoisson&) = delete;
  ~MakePoisson() { delete[] at_most; }

  unsigned find(unsigned x) const {
    const double u = x * 0x1p-32 + 0x1p-33;
    unsigned low = 0, high = most;
    while (low < high) {
      const unsigned middle = (low + high) / 2;
      if (at_most[middle] < u)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }
  template <class S> unsigned one(S* state) const {
    if constexpr (is_sobol<S>)
      return at_most ? find(to_32_bits(curand(state))) : curand_poisson(state, lambda);
    else
      return at_most ? find(curand(state)) : round_normal(curand_normal(state), lambda);
  }
  void four(curandStatePhilox4_32_10* state, unsigned* out) const {
    if (at_most)
      spread(curand4(state), out, [this](unsigned x) { return find(x); });
    else
      spread(curand_normal4(state), out, [this](float x) { return round_normal(x, lambda); });
  }
};

}  // namespace simt
