// check: sound
// near: race
// what: one sum per warp: lane 0 sets it to zero, all lanes add, lane 31 reads it, with a __syncwarp() between each two

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void warp_sums_twice(const int* in, int* out) {
  __shared__ int sums[2];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int turn = 1; turn <= 2; turn++) {
    if (lane == 0) sums[warp] = 0;
    __syncwarp();
    atomicAdd(&sums[warp], turn * in[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncwarp();
    if (lane == 31) out[blockIdx.x * 2 + warp] = sums[warp];
    __syncwarp();
  }
}

int main() {
  const int blocks = 3, threads = 64, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, 2 * blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  warp_sums_twice<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 2 * blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
