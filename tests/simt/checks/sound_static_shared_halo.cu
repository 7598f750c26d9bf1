// check: sound
// near: out_of_bounds
// what: the tile has one element more than the block has threads, for the right neighbour of the last one

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define BLOCK 64

__global__ void average_of_two(const float* in, float* out) {
  __shared__ float tile[BLOCK + 1];
  int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
  tile[t] = in[i];
  if (t == BLOCK - 1) tile[BLOCK] = in[i + 1];
  __syncthreads();
  out[i] = 0.5f * (tile[t] + tile[t + 1]);
}

int main() {
  const int n = 3 * BLOCK;
  float host[n + 1], *d_in, *d_out;
  for (int i = 0; i <= n; i++) host[i] = 2 * i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  average_of_two<<<3, BLOCK>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[BLOCK - 1], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
