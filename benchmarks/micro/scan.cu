// A block's running sums: Hillis and Steele's in shared memory, and by shuffles.
// sizes: 13 26 (log2 of the floats)
#include "micro.h"

constexpr int THREADS = 256;

__global__ void in_shared(const float* x, float* y) {
  __shared__ float part[2][THREADS];
  const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  int from = 0;
  part[0][threadIdx.x] = x[i];
  for (int step = 1; step < THREADS; step *= 2, from = 1 - from) {
    __syncthreads();
    float v = part[from][threadIdx.x];
    if (threadIdx.x >= step) v += part[from][threadIdx.x - step];
    part[1 - from][threadIdx.x] = v;
  }
  y[i] = part[from][threadIdx.x];
}

__global__ void by_shuffles(const float* x, float* y) {
  __shared__ float sums[THREADS / 32];
  const size_t i = blockIdx.x * (size_t)THREADS + threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float v = x[i];
  for (int step = 1; step < 32; step *= 2) {
    const float left = __shfl_up_sync(0xffffffffu, v, step);
    if (lane >= step) v += left;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; w++) v += sums[w];
  y[i] = v;
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 13);
  const unsigned blocks = n / THREADS;
  float *x = memory<float>(n), *y = memory<float>(n);
  measure("in shared memory", [&] { in_shared<<<blocks, THREADS>>>(x, y); });
  measure("by shuffles", [&] { by_shuffles<<<blocks, THREADS>>>(x, y); });
}
