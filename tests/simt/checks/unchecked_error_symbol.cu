// check: unchecked_error
// what: nine coefficients do not fit into the eight of constant memory: the copy fails, and its result is dropped

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__constant__ float coefficients[8];

__global__ void polynomial(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 7; k >= 0; k--) sum = sum * x[i] + coefficients[k];
  y[i] = sum;
}

int main() {
  const int n = 50;
  const float c[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  float host[n], *d_x, *d_y;
  for (int i = 0; i < n; i++) host[i] = 0.5f;
  CHECK(cudaMalloc(&d_x, sizeof(host)));
  CHECK(cudaMalloc(&d_y, sizeof(host)));
  CHECK(cudaMemcpy(d_x, host, sizeof(host), cudaMemcpyHostToDevice));
  cudaMemcpyToSymbol(coefficients, c, sizeof(c));  // defect
  polynomial<<<2, 32>>>(d_x, d_y, n);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, d_y, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%g\n", host[0]);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_y));
  return 0;
}
