// Reading again and again what fits into L2, and once what does not: float4s, floats, and one float of each sector.
// sizes: 1 24 (MB that are read 16 times; 32 times as much is read once)
#include "micro.h"

constexpr int THREADS = 256, PASSES = 16;

__device__ float total(float v) { return v; }
__device__ float total(float4 v) { return v.x + v.y + v.z + v.w; }

// In every pass a block reads another of the grid's pieces, each of `each` elements; lanes are STEP elements apart.
template <class T, int STEP>
__global__ void again(const T* x, float* y, int each) {
  float sum = 0.0f;
  for (int pass = 0; pass < PASSES; pass++) {
    const T* piece = x + (size_t)((blockIdx.x + pass * 37) % gridDim.x) * each;
#pragma unroll 4
    for (int i = threadIdx.x * STEP; i < each; i += THREADS * STEP) sum += total(piece[i]);
  }
  y[blockIdx.x * THREADS + threadIdx.x] = sum;
}

template <class T>
__global__ void once(const T* x, float* y, int each) {
  const T* piece = x + (size_t)blockIdx.x * each;
  float sum = 0.0f;
#pragma unroll 4
  for (int i = threadIdx.x; i < each; i += THREADS) sum += total(piece[i]);
  y[blockIdx.x * THREADS + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const size_t bytes = size_of_run(argc, argv, 1) << 20;
  const int blocks = bytes / (16 << 10);  // of 16 KB each
  float *x = memory<float>(bytes * 32 / 4), *y = memory<float>((size_t)blocks * 32 * THREADS);
  measure("float4, again", [&] { again<float4, 1><<<blocks, THREADS>>>((float4*)x, y, 1024); });
  measure("float, again", [&] { again<float, 1><<<blocks, THREADS>>>(x, y, 4096); });
  measure("a float a sector, again", [&] { again<float, 8><<<blocks, THREADS>>>(x, y, 4096); });
  measure("float4, once", [&] { once<<<blocks * 4, THREADS>>>((float4*)x, y, 8192); });
  measure("float, once", [&] { once<<<blocks * 4, THREADS>>>(x, y, 32768); });
}
