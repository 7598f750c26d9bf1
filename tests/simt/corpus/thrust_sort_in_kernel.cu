// title: Medians of many small groups: thrust::seq inside a kernel, thrust on the device around it
// features: thrust, thrust_in_kernels
// flags: -extended-lambda
#include <algorithm>
#include <cstdio>
#include <vector>

#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/equal.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/tabulate.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

constexpr int kGroup = 24;

// Each thread sorts its own group in place and takes the median and the number of distinct values.
__global__ void medians(int* data, int groups, float* median, int* distinct) {
  const int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g >= groups) return;
  int* first = data + g * kGroup;
  thrust::sort(thrust::seq, first, first + kGroup);
  median[g] = 0.5f * (first[kGroup / 2 - 1] + first[kGroup / 2]);
  int copy[kGroup];
  thrust::copy(thrust::seq, first, first + kGroup, copy);
  distinct[g] = static_cast<int>(thrust::unique(thrust::seq, copy, copy + kGroup) - copy);
}

__global__ void rotate(thrust::complex<float>* z, int n, float re, float im) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = z[i] * thrust::complex<float>(re, im);
}

struct Magnitude {
  __host__ __device__ float operator()(const thrust::complex<float>& z) const { return thrust::norm(z); }
};

int main() {
  const int groups = 200;
  std::vector<int> host(groups * kGroup);
  unsigned state = 2024;
  for (int& each : host) {
    state = state * 22695477u + 1u;
    each = static_cast<int>(state >> 16) % 50;
  }
  thrust::device_vector<int> data(host.begin(), host.end()), distinct(groups);
  thrust::device_vector<float> median(groups);
  medians<<<(groups + 63) / 64, 64>>>(data.data().get(), groups, median.data().get(), distinct.data().get());
  if (cudaDeviceSynchronize() != cudaSuccess) {
    std::printf("the kernel failed\n");
    return 1;
  }

  bool ok = true;
  for (int g = 0; g < groups; ++g) {
    auto first = host.begin() + g * kGroup;
    std::sort(first, first + kGroup);
    const float expected = 0.5f * static_cast<float>(first[kGroup / 2 - 1] + first[kGroup / 2]);
    int different = 1;
    for (int i = 1; i < kGroup; ++i) different += first[i] != first[i - 1];
    ok = ok && median[g] == expected && distinct[g] == different;
  }
  ok = ok && thrust::equal(data.begin(), data.end(), thrust::device_vector<int>(host.begin(), host.end()).begin());

  const auto best = thrust::max_element(median.begin(), median.end());
  std::printf("largest median %.1f in group %d\n", static_cast<float>(*best), static_cast<int>(best - median.begin()));
  std::printf("distinct values: %d\n", thrust::reduce(distinct.begin(), distinct.end()));
  const thrust::host_vector<float> all = median;
  ok = ok && static_cast<float>(*best) == *std::max_element(all.begin(), all.end());

  // A quarter turn four times is no turn.
  thrust::device_vector<thrust::complex<float>> z(64);
  thrust::tabulate(z.begin(), z.end(), [] __host__ __device__(int i) { return thrust::complex<float>(i, 1 - i); });
  const float before = thrust::transform_reduce(z.begin(), z.end(), Magnitude(), 0.0f, thrust::plus<float>());
  for (int turn = 0; turn < 4; ++turn) rotate<<<1, 64>>>(thrust::raw_pointer_cast(z.data()), 64, 0.0f, 1.0f);
  const float after = thrust::transform_reduce(z.begin(), z.end(), Magnitude(), 0.0f, thrust::plus<float>());
  const thrust::complex<float> last = z[63];
  ok = ok && before == after && last.real() == 63.0f && last.imag() == -62.0f;
  std::printf("sum of squares %.0f\n", after);
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
