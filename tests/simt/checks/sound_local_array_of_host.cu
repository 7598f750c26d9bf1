// check: sound
// near: out_of_bounds
// what: a local array of the host is copied to as a whole, and from its middle

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void square(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}

int main() {
  const int n = 65;
  float x[n], *d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMemset(d_x, 0, n * sizeof(float)));
  square<<<1, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(x, d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) x[i] = i;
  CHECK(cudaMemcpy(d_x, x + n / 2, (n - n / 2) * sizeof(float), cudaMemcpyHostToDevice));
  printf("%g\n", x[7]);
  CHECK(cudaFree(d_x));
  return 0;
}
