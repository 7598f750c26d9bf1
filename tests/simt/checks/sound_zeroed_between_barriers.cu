// check: sound
// near: race
// what: a shared sum is set, added to, read and set again by different threads, with a barrier between each two

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sums_twice(const int* in, int* out) {
  __shared__ int total;
  const int last = blockDim.x - 1;
  for (int turn = 1; turn <= 2; turn++) {
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, turn * in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == last) out[blockIdx.x] = total, total = -1;
    __syncthreads();
  }
}

int main() {
  const int blocks = 3, threads = 64, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  sums_twice<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
