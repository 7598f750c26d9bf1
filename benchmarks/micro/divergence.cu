// Lanes that go different ways: each way is walked once, with the other lanes waiting.
// sizes: 12 20 (log2 of the threads)
#include "micro.h"

__device__ float work(float v, int steps) {
#pragma unroll 1
  for (int i = 0; i < steps; i++) v = v * 0.999f + (v > 0.5f ? 0.25f : 0.125f);
  return v;
}

__global__ void no_branch(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = work(x[i], 64);
}

__global__ void by_parity(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 2 == 0)
    y[i] = work(x[i], 64);
  else
    y[i] = work(-x[i], 64) + 1.0f;
}

__global__ void by_warp(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x / 32 % 2 == 0)
    y[i] = work(x[i], 64);
  else
    y[i] = work(-x[i], 64) + 1.0f;
}

__global__ void by_quarter(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  switch (threadIdx.x % 4) {
    case 0: y[i] = work(x[i], 16); break;
    case 1: y[i] = work(x[i] + 1.0f, 32) + 1.0f; break;
    case 2: y[i] = work(x[i] + 2.0f, 48) * 2.0f; break;
    default: y[i] = work(x[i] + 3.0f, 64) - 3.0f;
  }
}

__global__ void trip_counts(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
#pragma unroll 1
  for (int outer = 0; outer < 4; outer++) v = work(v, threadIdx.x % 32 + 1) + outer;
  y[i] = v;
}

__global__ void early_return(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 >= 8) return;
  y[i] = work(x[i], 64);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12);
  float *x = memory<float>(n), *y = memory<float>(n);
  measure("no branch", [&] { no_branch<<<n / 256, 256>>>(x, y); });
  measure("by parity", [&] { by_parity<<<n / 256, 256>>>(x, y); });
  measure("by warp", [&] { by_warp<<<n / 256, 256>>>(x, y); });
  measure("by quarter", [&] { by_quarter<<<n / 256, 256>>>(x, y); });
  measure("trip counts 1 to 32", [&] { trip_counts<<<n / 256, 256>>>(x, y); });
  measure("early return", [&] { early_return<<<n / 256, 256>>>(x, y); });
}
