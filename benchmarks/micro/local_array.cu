// An array a thread: indexed by constants it stays in registers, indexed by data it is local memory.
// sizes: 11 22 (log2 of the threads)
#include "micro.h"

constexpr int N = 16;

__global__ void registers(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float part[N] = {};
  for (int k = 0; k < N; k++) part[k] = x[i] * k;
  float sum = 0.0f;
  for (int k = 0; k < N; k++) sum = sum * 0.5f + part[k];
  y[i] = sum;
}

__global__ void local_memory(const float* x, const int* order, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float part[N];
  for (int k = 0; k < N; k++) part[k] = x[i] * k;
  float sum = 0.0f;
  int at = order[i];
  for (int k = 0; k < N; k++) {
    at = (at * 5 + 1) % N;
    sum = sum * 0.5f + part[at];
  }
  y[i] = sum;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 11);
  float *x = memory<float>(n), *y = memory<float>(n);
  int* order = memory<int>(n);
  measure("registers", [&] { registers<<<n / 256, 256>>>(x, y); });
  measure("local memory", [&] { local_memory<<<n / 256, 256>>>(x, order, y); });
}
