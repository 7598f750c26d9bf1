// title: Pi by random points, with an engine for each sample that jumps to its place in the sequence
// features: thrust, random_numbers, std_flags
// flags: -std=c++17 -extended-lambda
#include <cmath>
#include <iomanip>
#include <iostream>

#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/random.h>
#include <thrust/transform_reduce.h>
#include <thrust/execution_policy.h>

__host__ __device__ unsigned int hash(unsigned int a) {
  a ^= a >> 16;
  a *= 0x7feb352du;
  a ^= a >> 15;
  a *= 0x846ca68bu;
  a ^= a >> 16;
  return a;
}

struct count_inside {
  unsigned int samples;
  explicit count_inside(unsigned int samples) : samples(samples) {}
  __host__ __device__ unsigned int operator()(unsigned int thread_id) const {
    thrust::default_random_engine rng(hash(thread_id));
    thrust::uniform_real_distribution<float> u01(0, 1);
    unsigned int inside = 0;
    for (unsigned int i = 0; i < samples; ++i) {
      float x = u01(rng);
      float y = u01(rng);
      if (x * x + y * y < 1.0f) ++inside;
    }
    return inside;
  }
};

// All samples from one sequence: sample i skips 2 i numbers.
struct one_sequence {
  __host__ __device__ bool operator()(unsigned long long i) const {
    thrust::minstd_rand rng(42);
    rng.discard(2 * i);
    thrust::uniform_int_distribution<int> side(0, 999);
    long long x = side(rng), y = side(rng);
    return x * x + y * y < 1000000;
  }
};

int main() {
  const unsigned int threads = 500, samples = 40;
  const unsigned int inside =
      thrust::transform_reduce(thrust::device, thrust::counting_iterator<unsigned int>(0),
                               thrust::counting_iterator<unsigned int>(threads), count_inside(samples), 0u,
                               thrust::plus<unsigned int>());
  const unsigned int on_host =
      thrust::transform_reduce(thrust::host, thrust::counting_iterator<unsigned int>(0),
                               thrust::counting_iterator<unsigned int>(threads), count_inside(samples), 0u,
                               thrust::plus<unsigned int>());
  const double pi = 4.0 * inside / (double(threads) * samples);

  const int n = 4000;
  const long long hits = thrust::transform_reduce(
      thrust::device, thrust::make_counting_iterator(0ull), thrust::make_counting_iterator((unsigned long long)n),
      [] __host__ __device__(unsigned long long i) { return one_sequence()(i) ? 1ll : 0ll; }, 0ll,
      thrust::plus<long long>());
  long long hits_ref = 0;
  unsigned long long state = 42;  // the same generator, written out: x -> 48271 x mod (2^31 - 1)
  auto next = [&state] {
    state = state * 48271 % 2147483647;
    const double u = (double)(state - 1) / (1.0 + 2147483645.0);
    return (long long)std::floor(u * 1000.0);
  };
  for (int i = 0; i < n; ++i) {
    const long long x = next(), y = next();
    hits_ref += x * x + y * y < 1000000;
  }

  std::cout << std::fixed << std::setprecision(4);
  std::cout << "pi is about " << pi << " (" << inside << " of " << threads * samples << ")\n";
  std::cout << "one sequence: " << hits << " of " << n << "\n";
  const bool ok = inside == on_host && std::fabs(pi - 3.14159) < 0.05 && hits == hits_ref;
  std::cout << (ok ? "PASSED" : "FAILED") << "\n";
  return ok ? 0 : 1;
}
