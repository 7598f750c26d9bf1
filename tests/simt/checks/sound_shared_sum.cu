// check: sound
// near: uninitialized
// what: one thread sets the shared sum to zero before the barrier; all add to it behind

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_positive(const float* x, int n, int* counts) {
  __shared__ int block_sum;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();
  if (i < n && x[i] > 0) atomicAdd(&block_sum, 1);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = block_sum;
}

int main() {
  const int n = 250, blocks = 4;
  float x[n], *d_x;
  int counts[blocks], *d_counts;
  for (int i = 0; i < n; i++) x[i] = i % 5 - 2;
  CHECK(cudaMalloc(&d_x, sizeof(x)));
  CHECK(cudaMalloc(&d_counts, sizeof(counts)));
  CHECK(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
  count_positive<<<blocks, 64>>>(d_x, n, d_counts);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost));
  for (int c : counts) printf("%d ", c);
  printf("\n");
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_counts));
  return 0;
}
