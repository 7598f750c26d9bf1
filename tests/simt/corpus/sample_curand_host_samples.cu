// title: Buffon's needle and a Poisson process with numbers of cuRAND's host API, in double precision
// features: curand_host, classes, reductions
// flags: -lcurand
// args: 20000

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <curand.h>

class Generator {
 public:
  Generator(curandRngType_t type, unsigned long long seed) {
    ok(curandCreateGenerator(&g_, type));
    ok(curandSetPseudoRandomGeneratorSeed(g_, seed));
  }
  ~Generator() { curandDestroyGenerator(g_); }
  Generator(const Generator&) = delete;
  void uniform(double* p, size_t n) { ok(curandGenerateUniformDouble(g_, p, n)); }
  void poisson(unsigned* p, size_t n, double lambda) { ok(curandGeneratePoisson(g_, p, n, lambda)); }
  void bits(unsigned* p, size_t n) { ok(curandGenerate(g_, p, n)); }

 private:
  static void ok(curandStatus_t s) {
    if (s != CURAND_STATUS_SUCCESS) throw std::runtime_error("cuRAND status " + std::to_string((int)s));
  }
  curandGenerator_t g_;
};

static void cu(cudaError_t e) {
  if (e != cudaSuccess) throw std::runtime_error(cudaGetErrorString(e));
}

__global__ void needles(const double* centre, const double* angle, int n, int* hits) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool hit = i < n && centre[i] * 0.5 <= 0.5 * sin(angle[i] * 3.14159265358979323846);
  int count = __syncthreads_count(hit);
  if (threadIdx.x == 0) atomicAdd(hits, count);
}

int main(int argc, char** argv) try {
  const int n = argc > 1 ? atoi(argv[1]) : 20000;
  double *a, *b;
  unsigned* u;
  int *d_hits, hits = 0;
  cu(cudaMalloc(&a, n * sizeof(double)));
  cu(cudaMalloc(&b, n * sizeof(double)));
  cu(cudaMalloc(&u, n * sizeof(unsigned)));
  cu(cudaMalloc(&d_hits, sizeof(int)));
  cu(cudaMemset(d_hits, 0, sizeof(int)));
  bool ok = true;
  {
    Generator g(CURAND_RNG_PSEUDO_MRG32K3A, 31);
    g.uniform(a, n);
    g.uniform(b, n);
    needles<<<(n + 127) / 128, 128>>>(a, b, n, d_hits);
    cu(cudaGetLastError());
    cu(cudaMemcpy(&hits, d_hits, sizeof(int), cudaMemcpyDeviceToHost));
    std::vector<double> x(n), t(n);
    cu(cudaMemcpy(x.data(), a, n * sizeof(double), cudaMemcpyDeviceToHost));
    cu(cudaMemcpy(t.data(), b, n * sizeof(double), cudaMemcpyDeviceToHost));
    int want = 0;
    for (int i = 0; i < n; i++) want += x[i] <= std::sin(t[i] * M_PI);
    double p = 2 / M_PI, expected = n * p, sigma = std::sqrt(n * p * (1 - p));
    std::printf("needles: %.2f of them cross a line\n", hits / (double)n);
    ok = ok && std::abs(hits - want) <= 1 && std::fabs(hits - expected) < 5 * sigma;
  }
  std::vector<unsigned> counts(n), first(n);
  for (double lambda : {0.5, 8.0, 30.0}) {
    Generator g(CURAND_RNG_PSEUDO_XORWOW, 5);
    g.poisson(u, n, lambda);
    cu(cudaMemcpy(counts.data(), u, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
    double mean = 0, var = 0;
    for (unsigned c : counts) mean += c / (double)n;
    for (unsigned c : counts) var += (c - mean) * (c - mean) / n;
    bool fits = std::fabs(mean - lambda) < 5 * std::sqrt(lambda / n) && std::fabs(var / lambda - 1) < 0.1;
    std::printf("Poisson of mean %.1f: %s\n", lambda, fits ? "fits" : "does not fit");
    ok = ok && fits;
  }
  Generator one(CURAND_RNG_PSEUDO_PHILOX4_32_10, 9), two(CURAND_RNG_PSEUDO_PHILOX4_32_10, 9);
  one.bits(u, n);
  cu(cudaMemcpy(first.data(), u, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  two.bits(u, n);
  cu(cudaMemcpy(counts.data(), u, n * sizeof(unsigned), cudaMemcpyDeviceToHost));
  long ones = 0;
  for (unsigned w : first) ones += __builtin_popcount(w);
  std::printf("equal seeds, equal bits: %s\n", first == counts ? "yes" : "no");
  ok = ok && first == counts && std::labs(ones - 16L * n) < 5 * std::sqrt(8.0 * n);
  cu(cudaFree(a));
  cu(cudaFree(b));
  cu(cudaFree(u));
  cu(cudaFree(d_hits));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 2;
}
