// check: sound
// near: race
// what: blocks wait for their predecessor at a volatile flag, with fences; tickets make sure that it has started

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int tickets = 0;
__device__ volatile int ready[8];

__global__ void running_maximum(const int* in, int* block_max, int* out) {
  __shared__ int ticket, top;
  int t = threadIdx.x;
  if (t == 0) ticket = atomicAdd(&tickets, 1), top = 0;
  __syncthreads();
  atomicMax(&top, in[64 * ticket + t]);
  __syncthreads();
  if (t == 0) {
    if (ticket > 0) {
      while (ready[ticket - 1] == 0) {}
      __threadfence();
      top = max(top, block_max[ticket - 1]);
    }
    block_max[ticket] = top;
    __threadfence();
    ready[ticket] = 1;
  }
  __syncthreads();
  out[64 * ticket + t] = top;
}

int main() {
  const int blocks = 5, n = 64 * blocks;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = (i * 53 % 97) + (i == 100 ? 500 : 0);
  int *d_in, *d_max, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_max, blocks * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  running_maximum<<<blocks, 64>>>(d_in, d_max, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int b = 0; b < blocks; b++) printf("%d ", host[64 * b]);
  printf("\n");
  for (int* p : {d_in, d_max, d_out}) CHECK(cudaFree(p));
  return 0;
}
