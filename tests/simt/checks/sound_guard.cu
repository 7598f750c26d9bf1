// check: sound
// near: out_of_bounds
// what: the grid is rounded up to whole blocks, but threads past n do nothing

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
  const int n = 1000, threads = 128;
  std::vector<float> x(n), y(n, 1.0f);
  for (int i = 0; i < n; i++) x[i] = i % 10;
  float *d_x, *d_y;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_y, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_y, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  saxpy<<<(n + threads - 1) / threads, threads>>>(n, 2.0f, d_x, d_y);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : y) sum += v;
  printf("sum %.0f\n", sum);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_y));
  return 0;
}
