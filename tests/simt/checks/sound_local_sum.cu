// check: sound
// near: uninitialized
// what: a local float adds up squares from 0, and a loop of no columns leaves it there

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)


__global__ void sum_rows(const float* x, float* sums, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int c = 0; c < columns; ++c) {
    const float v = x[row * columns + c];
    sum += v * v;
  }
  sums[row] = sum;
}

int main() {
  const int rows = 100, columns = 33;
  std::vector<float> x(rows * columns, 0.5f), sums(rows);
  float *d_x, *d_sums;
  CHECK(cudaMalloc(&d_x, x.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_sums, rows * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
  sum_rows<<<2, 64>>>(d_x, d_sums, rows, columns);
  sum_rows<<<2, 64>>>(d_x, d_sums, rows, 0);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_sums, rows * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", sums[7]);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_sums));
  return 0;
}
