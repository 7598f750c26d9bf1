// check: sound
// near: race
// what: the block that counts last reads and resets the total and the counter plainly, which all have added to before

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int total, arrived;

__global__ void sum_all(const int* in, int* out) {
  atomicAdd(&total, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      __threadfence();
      out[0] = total;
      out[1] = arrived;
      total = 0;
      arrived = 0;
    }
  }
}

int main() {
  const int blocks = 4, threads = 64, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, 2 * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  for (int launch = 0; launch < 2; launch++) sum_all<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
