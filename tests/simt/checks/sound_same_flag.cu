// check: sound
// near: race
// allows: race
// what: several threads set the same flag to the same value, and nobody reads it before the kernel's end: worth a warning at most

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void any_negative(const float* x, int n, int* found) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < 0) *found = 1;
}

int main() {
  const int n = 180;
  float x[n], *d_x;
  int found, *d_found;
  for (int i = 0; i < n; i++) x[i] = i % 9 - 3;
  CHECK(cudaMalloc(&d_x, sizeof(x)));
  CHECK(cudaMalloc(&d_found, sizeof(int)));
  CHECK(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_found, 0, sizeof(int)));
  any_negative<<<3, 64>>>(d_x, n, d_found);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&found, d_found, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", found);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_found));
  return 0;
}
