// title: Moments of uniform, normal, log-normal and Poisson numbers of the device generators
// features: curand_device, warp_shuffles, function_objects

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <curand_kernel.h>

#define ERRCHECK(call)                                                             \
  do {                                                                             \
    cudaError_t e = call;                                                          \
    if (e != cudaSuccess) {                                                        \
      fprintf(stderr, "CUDA failure %s:%d: '%s'\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
      exit(EXIT_FAILURE);                                                          \
    }                                                                              \
  } while (0)

struct Uniform { __device__ double operator()(curandState* s) const { return curand_uniform(s); } };
struct UniformDouble { __device__ double operator()(curandState* s) const { return curand_uniform_double(s); } };
struct Normal { __device__ double operator()(curandState* s) const { return 2.0f + 3.0f * curand_normal(s); } };
struct NormalPair {
  __device__ double operator()(curandState* s) const {
    float2 p = curand_normal2(s);
    return (p.x + p.y) * 0.70710678f;
  }
};
struct LogNormal { __device__ double operator()(curandState* s) const { return curand_log_normal(s, 0.5f, 0.25f); } };
struct Poisson { __device__ double operator()(curandState* s) const { return curand_poisson(s, 12.0); } };

__device__ double warpSum(double v) {
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffff, v, offset);
  return v;
}

template <typename Draw>
__global__ void moments(double2* out, int n, Draw draw) {
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  curandState s;
  curand_init(42, id, 0, &s);
  double sum = 0, squares = 0;
  for (int i = 0; i < n; i++) {
    double v = draw(&s);
    sum += v;
    squares += v * v;
  }
  sum = warpSum(sum);
  squares = warpSum(squares);
  if (threadIdx.x % warpSize == 0) out[id / warpSize] = make_double2(sum, squares);
}

template <typename Draw>
bool test(const char* name, Draw draw, double mean, double variance) {
  const int blocks = 8, threads = 64, n = 40, warps = blocks * threads / 32;
  double2* d;
  std::vector<double2> h(warps);
  ERRCHECK(cudaMalloc(&d, warps * sizeof(double2)));
  moments<<<blocks, threads>>>(d, n, draw);
  ERRCHECK(cudaGetLastError());
  ERRCHECK(cudaMemcpy(h.data(), d, warps * sizeof(double2), cudaMemcpyDeviceToHost));
  ERRCHECK(cudaFree(d));
  double sum = 0, squares = 0, count = (double)blocks * threads * n;
  for (auto p : h) sum += p.x, squares += p.y;
  double m = sum / count, v = squares / count - m * m;
  printf("%-16s mean %.2f variance %.1f\n", name, m, v);
  return fabs(m - mean) < 5 * sqrt(variance / count) && fabs(v / variance - 1) < 0.06;
}

// Skipping ahead must lead to the same numbers as drawing.
__global__ void skipping(int* wrong) {
  curandState a, b;
  curand_init(7, threadIdx.x, 0, &a);
  curand_init(7, threadIdx.x, 0, &b);
  for (int i = 0; i < 37; i++) curand(&a);
  skipahead(37ULL, &b);
  if (curand(&a) != curand(&b)) atomicAdd(wrong, 1);
  curandState c, d;
  curand_init(7, threadIdx.x + 1, 5, &c);
  curand_init(7, threadIdx.x, 5, &d);
  skipahead_sequence(1ULL, &d);
  if (curand(&c) != curand(&d)) atomicAdd(wrong, 1);
}

int main() {
  bool ok = test("uniform", Uniform(), 0.5, 1 / 12.0);
  ok &= test("uniform double", UniformDouble(), 0.5, 1 / 12.0);
  ok &= test("normal", Normal(), 2.0, 9.0);
  ok &= test("sum of a pair", NormalPair(), 0.0, 1.0);
  double m = exp(0.5 + 0.25 * 0.25 / 2), v = (exp(0.25 * 0.25) - 1) * exp(2 * 0.5 + 0.25 * 0.25);
  ok &= test("log-normal", LogNormal(), m, v);
  ok &= test("poisson", Poisson(), 12.0, 12.0);
  int *d_wrong, wrong = -1;
  ERRCHECK(cudaMalloc(&d_wrong, sizeof(int)));
  ERRCHECK(cudaMemset(d_wrong, 0, sizeof(int)));
  skipping<<<1, 32>>>(d_wrong);
  ERRCHECK(cudaGetLastError());
  ERRCHECK(cudaMemcpy(&wrong, d_wrong, sizeof(int), cudaMemcpyDeviceToHost));
  ERRCHECK(cudaFree(d_wrong));
  printf("skipping: %d differences\n", wrong);
  ok &= wrong == 0;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
