// Kernels that do next to nothing: what a launch costs, by the size of its grid and of its blocks.
// sizes: 1 1 (unused)
#include "micro.h"

__global__ void empty() {}

__global__ void one_store(float* y) { y[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

int main() {
  float* y = memory<float>(1 << 24);
  measure("empty", [&] { empty<<<1, 32>>>(); });
  measure("empty, 132 blocks", [&] { empty<<<132, 256>>>(); });
  measure("empty, 16384 blocks", [&] { empty<<<16384, 128>>>(); });
  measure("a store", [&] { one_store<<<1, 32>>>(y); });
  measure("a store, 1056 blocks", [&] { one_store<<<1056, 256>>>(y); });
}
