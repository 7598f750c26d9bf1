// check: sound
// near: race
// what: the block's maximum by atomicMax on shared memory

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void maxima(const int* in, int* out, int n) {
  __shared__ int block_max;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) block_max = 0;
  __syncthreads();
  if (i < n && in[i] > 90) atomicMax(&block_max, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = block_max;
}

int main() {
  const int n = 400, blocks = 4;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i * 41 % 101;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  maxima<<<blocks, 100>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d %d\n", host[0], host[1], host[2], host[3]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
