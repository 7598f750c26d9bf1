// A block's sum by a tree in shared memory with interleaved or sequential addressing, and by shuffles.
// sizes: 14 26 (log2 of the floats)
#include "micro.h"

constexpr int THREADS = 256;

__global__ void interleaved(const float* x, float* y) {
  __shared__ float part[THREADS];
  part[threadIdx.x] = x[blockIdx.x * (size_t)THREADS + threadIdx.x];
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    if (threadIdx.x % (2 * step) == 0) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

__global__ void strided(const float* x, float* y) {
  __shared__ float part[THREADS];
  part[threadIdx.x] = x[blockIdx.x * (size_t)THREADS + threadIdx.x];
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    const int at = 2 * step * threadIdx.x;
    if (at < THREADS) part[at] += part[at + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

// The same with its loop as it stands: unrolled, nvcc knows in the first turn that the two words are neighbours, and loads both at once.
__global__ void strided_in_turns(const float* x, float* y) {
  __shared__ float part[THREADS];
  part[threadIdx.x] = x[blockIdx.x * (size_t)THREADS + threadIdx.x];
  __syncthreads();
#pragma unroll 1
  for (int step = 1; step < THREADS; step *= 2) {
    const int at = 2 * step * threadIdx.x;
    if (at < THREADS) part[at] += part[at + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

__global__ void sequential(const float* x, float* y) {
  __shared__ float part[THREADS];
  part[threadIdx.x] = x[blockIdx.x * (size_t)THREADS + threadIdx.x];
  __syncthreads();
  for (int step = THREADS / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

__global__ void shuffles(const float* x, float* y) {
  __shared__ float part[THREADS / 32];
  float v = x[blockIdx.x * (size_t)THREADS + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  v = threadIdx.x < THREADS / 32 ? part[threadIdx.x] : 0.0f;
  for (int offset = THREADS / 64; offset > 0; offset /= 2) v += __shfl_down_sync(0xffffffffu, v, offset);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 14);
  const unsigned blocks = n / THREADS;
  float *x = memory<float>(n), *y = memory<float>(blocks);
  measure("interleaved", [&] { interleaved<<<blocks, THREADS>>>(x, y); });
  measure("strided", [&] { strided<<<blocks, THREADS>>>(x, y); });
  measure("strided, in turns", [&] { strided_in_turns<<<blocks, THREADS>>>(x, y); });
  measure("sequential", [&] { sequential<<<blocks, THREADS>>>(x, y); });
  measure("shuffles", [&] { shuffles<<<blocks, THREADS>>>(x, y); });
}
