// check: out_of_bounds
// what: the value 1.0 belongs to the last bin, but x * BINS puts it one behind
// array: bins
// index: 10

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define BINS 10

__global__ void histogram(const float* x, int n, int* bins) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int bin = (int)(x[i] * BINS);
  atomicAdd(bins + bin, 1);  // defect
}

int main() {
  const int n = 257;
  std::vector<float> x(n);
  for (int i = 0; i < n; i++) x[i] = i / 256.0f;  // 0 … 1, both included
  float* d_x;
  int bins[BINS], *d_bins;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_bins, sizeof(bins)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_bins, 0, sizeof(bins)));
  histogram<<<5, 64>>>(d_x, n, d_bins);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(bins, d_bins, sizeof(bins), cudaMemcpyDeviceToHost));
  for (int count : bins) printf("%d ", count);
  printf("\n");
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_bins));
  return 0;
}
