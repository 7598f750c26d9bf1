// Bytes per thread in runs: each thread walks over its own 64 neighbouring bytes, or the block's threads walk side by side.
// sizes: 11 23 (log2 of the threads)
#include "micro.h"

constexpr int EACH = 64;

__global__ void own_run(const unsigned char* x, int* y) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  int sum = 0;
  for (int k = 0; k < EACH; k++) sum += x[i * EACH + k];
  y[i] = sum;
}

__global__ void side_by_side(const unsigned char* x, int* y) {
  const size_t first = blockIdx.x * (size_t)blockDim.x * EACH;
  int sum = 0;
  for (int k = 0; k < EACH; k++) sum += x[first + k * blockDim.x + threadIdx.x];
  y[blockIdx.x * (size_t)blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 11);
  unsigned char* x = memory<unsigned char>(n * EACH);
  int* y = memory<int>(n);
  measure("own run of bytes", [&] { own_run<<<n / 256, 256>>>(x, y); });
  measure("bytes side by side", [&] { side_by_side<<<n / 256, 256>>>(x, y); });
}
