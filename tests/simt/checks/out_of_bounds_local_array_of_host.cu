// check: out_of_bounds
// what: a local array of the host has one number less than are copied to it
// thread: none

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
  float x[n - 1], *d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMemset(d_x, 0, n * sizeof(float)));
  square<<<1, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(x, d_x, n * sizeof(float), cudaMemcpyDeviceToHost));  // defect
  printf("%g\n", x[7]);
  CHECK(cudaFree(d_x));
  return 0;
}
