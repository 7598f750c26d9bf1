// check: barrier_divergence
// what: only threads with a valid element count themselves in __syncthreads_count, which waits for the whole block

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_even(const int* in, int n, int* counts) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
  if (i < n) {
    count = __syncthreads_count(in[i] % 2 == 0);  // defect
  }
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}

int main() {
  const int n = 140, blocks = 3;
  int host[n], *d_in, *d_counts;
  for (int i = 0; i < n; i++) host[i] = 3 * i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_counts, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  count_even<<<blocks, 64>>>(d_in, n, d_counts);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_counts, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_counts));
  return 0;
}
