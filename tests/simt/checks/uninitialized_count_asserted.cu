// check: uninitialized
// array: counts
// what: the bins of a histogram are not cleared, their sum overflows, and an assertion on it fails

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count(const int* in, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[in[i] % 4], 1);  // defect
}

__global__ void check(const int* counts, int n) {
  int total = 0;
  for (int i = 0; i < 4; i++) total += counts[i];
  assert(total == n);
}

int main() {
  const int n = 100;
  int host[n], *in, *counts;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&counts, 4 * sizeof(int)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  count<<<4, 32>>>(in, counts, n);
  check<<<1, 1>>>(counts, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(in);
  cudaFree(counts);
}
