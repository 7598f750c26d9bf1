// title: Asian option by quasi-Monte Carlo, a Sobol dimension for each time step
// features: curand_host, quasi_random, reductions, templates
// flags: -lcurand
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <curand.h>

#define CHECK_CUDA(call)                                                                           \
  do {                                                                                             \
    cudaError_t status_ = (call);                                                                  \
    if (status_ != cudaSuccess) {                                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));             \
      exit(EXIT_FAILURE);                                                                          \
    }                                                                                              \
  } while (0)

#define CHECK_CURAND(call)                                                                         \
  do {                                                                                             \
    curandStatus_t status_ = (call);                                                               \
    if (status_ != CURAND_STATUS_SUCCESS) {                                                        \
      fprintf(stderr, "%s:%d: curand status %d\n", __FILE__, __LINE__, (int)status_);              \
      exit(EXIT_FAILURE);                                                                          \
    }                                                                                              \
  } while (0)

struct Option {
  double spot, strike, rate, volatility, years;
  int steps;
};

// Each thread walks one path. The normal numbers of a step lie together, so that a warp's loads are contiguous.
template <int BlockSize>
__global__ void price_paths(const float *normals, int paths, Option option, double *arithmetic, double *geometric) {
  __shared__ double sums[2][BlockSize];
  const double dt = option.years / option.steps;
  const double drift = (option.rate - 0.5 * option.volatility * option.volatility) * dt;
  const double diffusion = option.volatility * sqrt(dt);
  double a = 0, g = 0;
  for (int path = blockIdx.x * BlockSize + threadIdx.x; path < paths; path += gridDim.x * BlockSize) {
    double log_price = log(option.spot), sum = 0, log_sum = 0;
    for (int step = 0; step < option.steps; ++step) {
      log_price += drift + diffusion * normals[step * paths + path];
      sum += exp(log_price);
      log_sum += log_price;
    }
    a += fmax(sum / option.steps - option.strike, 0.0);
    g += fmax(exp(log_sum / option.steps) - option.strike, 0.0);
  }
  sums[0][threadIdx.x] = a;
  sums[1][threadIdx.x] = g;
  __syncthreads();
  for (int half = BlockSize / 2; half > 0; half /= 2) {
    if (threadIdx.x < half)
      for (int k = 0; k < 2; ++k) sums[k][threadIdx.x] += sums[k][threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    arithmetic[blockIdx.x] = sums[0][0];
    geometric[blockIdx.x] = sums[1][0];
  }
}

static double normal_cdf(double x) { return 0.5 * erfc(-x / sqrt(2.0)); }

// The geometric average is log-normal, so its option has a closed form.
static double geometric_price(const Option &o) {
  const double n = o.steps, dt = o.years / n;
  const double mean = log(o.spot) + (o.rate - 0.5 * o.volatility * o.volatility) * dt * (n + 1) / 2;
  const double variance = o.volatility * o.volatility * dt * (n + 1) * (2 * n + 1) / (6 * n);
  const double deviation = sqrt(variance);
  const double d2 = (mean - log(o.strike)) / deviation, d1 = d2 + deviation;
  return exp(-o.rate * o.years) * (exp(mean + variance / 2) * normal_cdf(d1) - o.strike * normal_cdf(d2));
}

int main(int argc, char **argv) {
  const int paths = argc > 1 ? atoi(argv[1]) : 16384;
  const Option option = {100, 100, 0.05, 0.2, 1.0, 16};
  const int block = 128, grid = 8;

  float *normals;
  double *arithmetic, *geometric;
  CHECK_CUDA(cudaMalloc(&normals, sizeof(float) * paths * option.steps));
  CHECK_CUDA(cudaMalloc(&arithmetic, sizeof(double) * grid));
  CHECK_CUDA(cudaMalloc(&geometric, sizeof(double) * grid));

  curandGenerator_t generator;
  CHECK_CURAND(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32));
  CHECK_CURAND(curandSetQuasiRandomGeneratorDimensions(generator, option.steps));
  CHECK_CURAND(curandSetGeneratorOrdering(generator, CURAND_ORDERING_QUASI_DEFAULT));
  CHECK_CURAND(curandSetGeneratorOffset(generator, 1));  // the first point is 0 in all dimensions
  CHECK_CURAND(curandGenerateNormal(generator, normals, (size_t)paths * option.steps, 0.0f, 1.0f));

  price_paths<block><<<grid, block>>>(normals, paths, option, arithmetic, geometric);
  CHECK_CUDA(cudaGetLastError());

  std::vector<double> a(grid), g(grid);
  CHECK_CUDA(cudaMemcpy(a.data(), arithmetic, sizeof(double) * grid, cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(g.data(), geometric, sizeof(double) * grid, cudaMemcpyDeviceToHost));
  double mean_arithmetic = 0, mean_geometric = 0;
  for (int i = 0; i < grid; ++i) {
    mean_arithmetic += a[i] / paths;
    mean_geometric += g[i] / paths;
  }
  const double discount = exp(-option.rate * option.years), exact = geometric_price(option);
  printf("geometric average:  %.2f, in closed form %.2f\n", discount * mean_geometric, exact);
  printf("arithmetic average: %.2f\n", discount * mean_arithmetic);

  CHECK_CURAND(curandDestroyGenerator(generator));
  CHECK_CUDA(cudaFree(normals));
  CHECK_CUDA(cudaFree(arithmetic));
  CHECK_CUDA(cudaFree(geometric));
  // The arithmetic mean is never below the geometric one, and close to it.
  const bool passed = fabs(discount * mean_geometric - exact) < 0.05 && mean_arithmetic > mean_geometric &&
                      mean_arithmetic < 1.1 * mean_geometric;
  printf(passed ? "PASSED\n" : "FAILED\n");
  return passed ? 0 : 1;
}
