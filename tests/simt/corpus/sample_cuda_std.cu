// title: libcu++ in kernels: arrays, tuples, complex numbers, optional, atomics
// features: libcudacxx, templates, atomics, std_flags
// flags: -std=c++20

#include <algorithm>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda/atomic>
#include <cuda/std/array>
#include <cuda/std/complex>
#include <cuda/std/limits>
#include <cuda/std/optional>
#include <cuda/std/tuple>
#include <cuda/std/type_traits>

#define CHECK(call)                                                       \
  do {                                                                    \
    if (cudaError_t e = (call); e != cudaSuccess) {                       \
      std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(e));      \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

using Polynomial = cuda::std::array<double, 4>;  // c0 + c1 z + c2 z^2 + c3 z^3
using Complex = cuda::std::complex<double>;

template <class T>
__host__ __device__ T evaluate(const Polynomial& p, T z) {
  T sum = T(p[3]);
  for (int k = 2; k >= 0; --k) sum = sum * z + T(p[k]);
  return sum;
}

__host__ __device__ cuda::std::tuple<double, double> bounds(const Polynomial& p) {
  double low = cuda::std::numeric_limits<double>::max(), high = cuda::std::numeric_limits<double>::lowest();
  for (double c : p) {
    low = c < low ? c : low;
    high = c > high ? c : high;
  }
  return {low, high};
}

// The first of n points at which the polynomial's value is small, if there is one.
__device__ cuda::std::optional<int> findRoot(const Polynomial& p, int n) {
  for (int i = 0; i < n; ++i) {
    double x = -4 + 0.5 * i;
    if (evaluate(p, x) == 0.0) return i;
  }
  return cuda::std::nullopt;
}

struct Statistics {
  cuda::atomic<int, cuda::thread_scope_device> roots, without;
};

__global__ void study(const Polynomial* polys, int n, Complex* values, double* widths, int* firsts, Statistics* stats) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  values[i] = evaluate(polys[i], Complex(0.5, -1.0));
  auto [low, high] = bounds(polys[i]);
  widths[i] = high - low;
  auto root = findRoot(polys[i], 17);
  firsts[i] = root.value_or(-1);
  if (root.has_value())
    stats->roots.fetch_add(1, cuda::memory_order_relaxed);
  else
    stats->without.fetch_add(1, cuda::memory_order_relaxed);
}

int main() {
  const int n = 300;
  std::vector<Polynomial> polys(n);
  for (int i = 0; i < n; ++i)
    polys[i] = {(double)(i % 7 - 3), (double)(i % 5 - 2), (double)(i % 3 - 1), (double)(i % 2 + 1)};
  Polynomial* dp;
  Complex* dv;
  double* dw;
  int* df;
  Statistics* ds;
  CHECK(cudaMalloc(&dp, n * sizeof(Polynomial)));
  CHECK(cudaMalloc(&dv, n * sizeof(Complex)));
  CHECK(cudaMalloc(&dw, n * sizeof(double)));
  CHECK(cudaMalloc(&df, n * sizeof(int)));
  CHECK(cudaMalloc(&ds, sizeof(Statistics)));
  CHECK(cudaMemset(ds, 0, sizeof(Statistics)));
  CHECK(cudaMemcpy(dp, polys.data(), n * sizeof(Polynomial), cudaMemcpyHostToDevice));
  study<<<(n + 63) / 64, 64>>>(dp, n, dv, dw, df, ds);
  CHECK(cudaGetLastError());
  std::vector<std::complex<double>> values(n);
  std::vector<double> widths(n);
  std::vector<int> firsts(n);
  int counts[2];
  static_assert(sizeof(Statistics) == sizeof(counts) && sizeof(Complex) == sizeof(std::complex<double>));
  CHECK(cudaMemcpy((void*)values.data(), dv, n * sizeof(Complex), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(widths.data(), dw, n * sizeof(double), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(firsts.data(), df, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(counts, ds, sizeof counts, cudaMemcpyDeviceToHost));

  int wrong = 0, roots = 0;
  std::complex<double> total = 0;
  for (int i = 0; i < n; ++i) {
    auto& p = polys[i];
    std::complex<double> z(0.5, -1.0), want = p[0] + p[1] * z + p[2] * z * z + p[3] * z * z * z;
    wrong += std::abs(want - values[i]) > 1e-12;
    double low = p[0], high = p[0];
    int first = -1;
    for (int k = 1; k < 4; ++k) low = std::min(low, p[k]), high = std::max(high, p[k]);
    for (int k = 16; k >= 0; --k) {
      double x = -4 + 0.5 * k;
      if (p[0] + p[1] * x + p[2] * x * x + p[3] * x * x * x == 0) first = k;
    }
    wrong += widths[i] != high - low;
    wrong += firsts[i] != first;
    roots += first >= 0;
    total += values[i];
  }
  wrong += counts[0] != roots || counts[1] != n - roots;
  std::printf("%d of %d have a root; sum of the values %.2f %+.2fi\n", counts[0], n, total.real(), total.imag());
  CHECK(cudaFree(dp));
  CHECK(cudaFree(dv));
  CHECK(cudaFree(dw));
  CHECK(cudaFree(df));
  CHECK(cudaFree(ds));
  std::puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
