// check: sound
// near: race
// what: a block adds the sums of the blocks before it, which an earlier launch computed

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void chunk_sums(const int* in, int* sums) {
  int v = in[blockIdx.x * 32 + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (threadIdx.x == 0) sums[blockIdx.x] = v;
}

__global__ void prefix(const int* in, int* sums, int* out) {
  int v = in[blockIdx.x * 32 + threadIdx.x], total = v;
  for (int d = 16; d > 0; d /= 2) total += __shfl_xor_sync(0xffffffff, total, d);
  for (int d = 1; d < 32; d *= 2) {
    int left = __shfl_up_sync(0xffffffff, v, d);
    if (threadIdx.x >= d) v += left;
  }
  for (int b = 0; b < blockIdx.x; b++) v += sums[b];
  out[blockIdx.x * 32 + threadIdx.x] = v;
}

int main() {
  const int blocks = 6, n = 32 * blocks;
  std::vector<int> host(n, 1);
  int *d_in, *d_sums, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_sums, blocks * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  chunk_sums<<<blocks, 32>>>(d_in, d_sums);
  prefix<<<blocks, 32>>>(d_in, d_sums, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_sums));
  CHECK(cudaFree(d_out));
  return 0;
}
