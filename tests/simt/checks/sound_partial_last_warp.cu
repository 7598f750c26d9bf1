// check: sound
// near: warp_divergence
// what: blocks of 48 threads: the second warp's mask and shuffle distances are those of its 16 lanes

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void block_sum(const int* in, int* out) {
  __shared__ int warp_sums[2];
  int t = threadIdx.x, v = in[blockIdx.x * blockDim.x + t];
  int lanes = min(32, (int)blockDim.x - t / 32 * 32);
  unsigned mask = lanes == 32 ? 0xffffffff : (1u << lanes) - 1;
  for (int offset = lanes / 2; offset > 0; offset /= 2) v += __shfl_down_sync(mask, v, offset, lanes);
  if (t % 32 == 0) warp_sums[t / 32] = v;
  __syncthreads();
  if (t == 0) out[blockIdx.x] = warp_sums[0] + warp_sums[1];
}

int main() {
  const int blocks = 3, threads = 48, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  block_sum<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", host[0], host[1], host[2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
