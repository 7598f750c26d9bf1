// Barriers, one after another, with a little work between: by the number of warps that wait for one another.
// sizes: 2 1056 (blocks)
#include "micro.h"

constexpr int STEPS = 128;

__global__ void pass_on(float* y) {
  __shared__ float row[1024];
  row[threadIdx.x] = threadIdx.x;
  for (int step = 0; step < STEPS; step++) {
    __syncthreads();
    const float v = row[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    row[threadIdx.x] = v + 1.0f;
  }
  y[blockIdx.x * blockDim.x + threadIdx.x] = row[threadIdx.x];
}

int main(int argc, char** argv) {
  const int blocks = size_of_run(argc, argv, 2);
  float* y = memory<float>((size_t)blocks * 1024);
  measure("blocks of 64", [&] { pass_on<<<blocks, 64>>>(y); });
  measure("blocks of 256", [&] { pass_on<<<blocks, 256>>>(y); });
  measure("blocks of 1024", [&] { pass_on<<<blocks, 1024>>>(y); });
}
