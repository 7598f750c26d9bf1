// check: race
// what: a __syncwarp() after the shared sum is set to zero orders the first warp only; the second adds too
// array: total

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sums(const int* in, int* out) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;  // other
  __syncwarp();
  atomicAdd(&total, in[blockIdx.x * blockDim.x + threadIdx.x]);  // defect
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}

int main() {
  const int blocks = 3, threads = 64, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  sums<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
