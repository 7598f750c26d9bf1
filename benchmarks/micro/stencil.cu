// A sum over 9 neighbours: every thread reads all 9 from global memory, or a block shares what it read.
// sizes: 14 26 (log2 of the floats)
#include "micro.h"

constexpr int THREADS = 256, RADIUS = 4;

// x has RADIUS elements before and after the n that y has.
__global__ void from_global(const float* x, float* y) {
  const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k <= 2 * RADIUS; k++) sum += x[i + k];
  y[i] = sum;
}

__global__ void from_shared(const float* x, float* y) {
  __shared__ float part[THREADS + 2 * RADIUS];
  const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  part[threadIdx.x] = x[i];
  if (threadIdx.x < 2 * RADIUS) part[THREADS + threadIdx.x] = x[i + THREADS];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k <= 2 * RADIUS; k++) sum += part[threadIdx.x + k];
  y[i] = sum;
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 14);
  const unsigned blocks = n / THREADS;
  float *x = memory<float>(n + 2 * RADIUS), *y = memory<float>(n);
  measure("from global memory", [&] { from_global<<<blocks, THREADS>>>(x, y); });
  measure("from shared memory", [&] { from_shared<<<blocks, THREADS>>>(x, y); });
}
