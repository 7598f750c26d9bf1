// title: European call by Monte Carlo: normal numbers from cuRAND's host API, several streams share the paths
// features: curand_host, streams, pinned_memory, events, std_flags
// flags: -lcurand -std=c++20
// args: 16384 4

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <span>
#include <vector>

#include <cuda_runtime.h>
#include <curand.h>

template <typename Status>
void verify(Status status, const char* text, int line) {
  if (static_cast<int>(status) != 0) {
    std::fprintf(stderr, "%s in line %d returned %d\n", text, line, static_cast<int>(status));
    std::exit(1);
  }
}
#define VERIFY(call) verify((call), #call, __LINE__)

struct Market {
  double spot = 100, strike = 105, rate = 0.02, volatility = 0.25, years = 1.5;
};

__global__ void payoffs(const double* __restrict__ normals, double* __restrict__ sums, int n, Market m) {
  __shared__ double partial[256];
  double drift = (m.rate - 0.5 * m.volatility * m.volatility) * m.years, spread = m.volatility * sqrt(m.years);
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    sum += fmax(m.spot * exp(drift + spread * normals[i]) - m.strike, 0.0);
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s; s >>= 1) {
    if (threadIdx.x < s) partial[threadIdx.x] += partial[threadIdx.x + s];
    __syncthreads();
  }
  if (!threadIdx.x) sums[blockIdx.x] = partial[0];
}

double blackScholes(const Market& m) {
  auto phi = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  double s = m.volatility * std::sqrt(m.years);
  double d1 = (std::log(m.spot / m.strike) + (m.rate + 0.5 * m.volatility * m.volatility) * m.years) / s;
  return m.spot * phi(d1) - m.strike * std::exp(-m.rate * m.years) * phi(d1 - s);
}

int main(int argc, char** argv) {
  const int paths = argc > 1 ? std::atoi(argv[1]) : 16384;
  const int workers = argc > 2 ? std::atoi(argv[2]) : 4;
  constexpr int kBlocks = 4;
  const int share = paths / workers;
  struct Worker {
    cudaStream_t stream;
    cudaEvent_t done;
    curandGenerator_t generator;
    double *normals, *sums, *host;
  };
  std::vector<Worker> team(workers);
  const Market market;
  for (int i = 0; i < workers; ++i) {
    Worker& w = team[i];
    VERIFY(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    VERIFY(cudaEventCreateWithFlags(&w.done, cudaEventDisableTiming));
    VERIFY(curandCreateGenerator(&w.generator, CURAND_RNG_PSEUDO_PHILOX4_32_10));
    VERIFY(curandSetPseudoRandomGeneratorSeed(w.generator, 77 + i));
    VERIFY(curandSetStream(w.generator, w.stream));
    VERIFY(cudaMalloc(&w.normals, share * sizeof(double)));
    VERIFY(cudaMalloc(&w.sums, kBlocks * sizeof(double)));
    VERIFY(cudaMallocHost(&w.host, kBlocks * sizeof(double)));
  }
  for (Worker& w : team) {
    VERIFY(curandGenerateNormalDouble(w.generator, w.normals, share, 0.0, 1.0));
    payoffs<<<kBlocks, 256, 0, w.stream>>>(w.normals, w.sums, share, market);
    VERIFY(cudaGetLastError());
    VERIFY(cudaMemcpyAsync(w.host, w.sums, kBlocks * sizeof(double), cudaMemcpyDeviceToHost, w.stream));
    VERIFY(cudaEventRecord(w.done, w.stream));
  }
  double total = 0, exact = blackScholes(market), lowest = 1e30, highest = 0;
  for (Worker& w : team) {
    VERIFY(cudaEventSynchronize(w.done));
    double sum = 0;
    for (double s : std::span(w.host, kBlocks)) sum += s;
    double price = std::exp(-market.rate * market.years) * sum / share;
    lowest = std::fmin(lowest, price), highest = std::fmax(highest, price);
    total += price / workers;
  }
  for (Worker& w : team) {
    VERIFY(curandDestroyGenerator(w.generator));
    VERIFY(cudaStreamDestroy(w.stream));
    VERIFY(cudaEventDestroy(w.done));
    VERIFY(cudaFree(w.normals));
    VERIFY(cudaFree(w.sums));
    VERIFY(cudaFreeHost(w.host));
  }
  std::printf("%d workers: simulated %.1f, exact %.2f\n", workers, total, exact);
  double error = 5 * 30.0 / std::sqrt((double)share * workers);
  const bool ok = std::fabs(total - exact) < error && lowest < highest;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
