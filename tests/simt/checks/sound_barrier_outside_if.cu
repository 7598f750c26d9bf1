// check: sound
// near: barrier_divergence
// what: the loads are guarded, the barrier is not

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void reverse_blocks(const int* in, int* out, int n) {
  __shared__ int tile[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  int length = min(64, n - (int)blockIdx.x * 64);
  if (i < n) tile[t] = in[i];
  __syncthreads();
  if (i < n) out[i] = tile[length - 1 - t];
}

int main() {
  const int n = 150;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reverse_blocks<<<3, 64>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
