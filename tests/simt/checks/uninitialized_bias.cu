// check: uninitialized
// what: the bias is allocated, but its values never reach the device
// array: bias

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add_bias(const float* x, const float* bias, float* y, int rows, int columns) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * columns; i += gridDim.x * blockDim.x) {
    float shift = bias[i % columns];  // defect
    y[i] = fmaxf(x[i] + shift, 0.0f);
  }
}

int main() {
  const int rows = 12, columns = 20, n = rows * columns;
  std::vector<float> x(n, 1.0f), bias(columns, -0.5f), y(n);
  float *d_x, *d_bias, *d_y;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_bias, columns * sizeof(float)));
  CHECK(cudaMalloc(&d_y, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  add_bias<<<2, 64>>>(d_x, d_bias, d_y, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", y[n - 1]);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_bias));
  CHECK(cudaFree(d_y));
  return 0;
}
