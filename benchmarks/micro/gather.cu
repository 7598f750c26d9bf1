// Loads and stores at random places (a fixed pattern: a step of a linear congruential generator), lane by lane or line by line.
// sizes: 13 25 (log2 of the threads and of the table's floats)
#include "micro.h"

__device__ size_t scattered(size_t i, size_t mask) { return (i * 1664525u + 1013904223u) * 22695477u >> 7 & mask; }

__global__ void gather(const float* table, float* y, size_t mask) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = table[scattered(i, mask)];
}

__global__ void gather_lines(const float* table, float* y, size_t mask) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = table[scattered(i / 32, mask / 32) * 32 + i % 32];
}

__global__ void scatter(const float* x, float* table, size_t mask) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  table[scattered(i, mask)] = x[i];
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 13);
  const unsigned blocks = n / 256;
  float *table = memory<float>(n), *y = memory<float>(n);
  measure("gather words", [&] { gather<<<blocks, 256>>>(table, y, n - 1); });
  measure("gather lines", [&] { gather_lines<<<blocks, 256>>>(table, y, n - 1); });
  measure("gather from 1 MB", [&] { gather<<<blocks, 256>>>(table, y, std::min(n, size_t(1) << 18) - 1); });
  measure("scatter words", [&] { scatter<<<blocks, 256>>>(y, table, n - 1); });
}
