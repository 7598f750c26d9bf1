// check: sound
// near: out_of_bounds
// what: constant memory has room for more weights than are copied to it

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__constant__ float weights[64];

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = weights[i % 64];
}

int main() {
  const int n = 300, taps = 49;
  std::vector<float> x(n);
  float own[taps], *d_x;
  for (int i = 0; i < taps; ++i) own[i] = i;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMemcpyToSymbol(weights, own, sizeof own));
  scale<<<(n + 127) / 128, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(x.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", x[7]);
  CHECK(cudaFree(d_x));
  return 0;
}
