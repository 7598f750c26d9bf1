// check: unchecked_error
// what: a block of 2048 threads is refused, the kernel never runs, and nobody asks for the launch's error

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void negate(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = -x[i];
}

int main() {
  const int n = 3000;
  std::vector<int> host(n, 1);
  int* d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(int)));
  CHECK(cudaMemcpy(d_x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  negate<<<(n + 2047) / 2048, 2048>>>(d_x, n);  // defect
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), d_x, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host[0]);
  CHECK(cudaFree(d_x));
  return 0;
}
