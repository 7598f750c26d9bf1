// The same bytes read again and again: from L1, from L2, and by all blocks at once.
// sizes: 4 1056 (blocks)
#include "micro.h"

constexpr int THREADS = 256, PASSES = 16;

// A block reads its own `each` floats PASSES times.
__global__ void own_piece(const float* x, float* y, int each) {
  const float* piece = x + (size_t)blockIdx.x * each;
  float sum = 0.0f;
#pragma unroll 1
  for (int pass = 0; pass < PASSES; pass++)
    for (int i = threadIdx.x; i < each; i += THREADS) sum += piece[i] * (pass + 1);
  y[blockIdx.x * THREADS + threadIdx.x] = sum;
}

// Every block reads all of the same floats, each beginning at another place.
__global__ void common_piece(const float* x, float* y, int all) {
  float sum = 0.0f;
  for (int i = threadIdx.x; i < all; i += THREADS) sum += x[(i + blockIdx.x * 4096) & (all - 1)];
  y[blockIdx.x * THREADS + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const int blocks = size_of_run(argc, argv, 4);
  float *x = memory<float>((size_t)blocks * 16384), *y = memory<float>((size_t)blocks * THREADS);
  measure("own 2 KB", [&] { own_piece<<<blocks, THREADS>>>(x, y, 512); });
  measure("own 32 KB", [&] { own_piece<<<blocks, THREADS>>>(x, y, 8192); });
  measure("common 64 KB", [&] { common_piece<<<blocks, THREADS>>>(x, y, 16384); });
  measure("common 4 MB or all", [&] { common_piece<<<blocks, THREADS>>>(x, y, std::min(blocks * 16384, 1 << 20)); });
}
