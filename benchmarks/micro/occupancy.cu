// The same copy with more and more shared memory a block, so that fewer and fewer warps are there to hide latency.
// sizes: 15 26 (log2 of the floats)
#include "micro.h"

constexpr int EACH = 8;  // elements a thread

__global__ void copy(const float* x, float* y) {
  extern __shared__ float taken[];
  if (threadIdx.x == 0) taken[0] = 0.0f;
  const size_t first = blockIdx.x * (size_t)blockDim.x * EACH + threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < EACH; k++) y[first + k * blockDim.x] = x[first + k * blockDim.x] + 1.0f;
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 15);
  float *x = memory<float>(n), *y = memory<float>(n);
  const unsigned blocks = n / EACH / 256;
  CHECK(cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  measure("1 KB a block", [&] { copy<<<blocks, 256, 1 << 10>>>(x, y); });
  measure("40 KB a block", [&] { copy<<<blocks, 256, 40 << 10>>>(x, y); });
  measure("64 KB a block", [&] { copy<<<blocks, 256, 64 << 10>>>(x, y); });
  measure("64 KB a block of 64", [&] { copy<<<blocks * 4, 64, 64 << 10>>>(x, y); });
}
