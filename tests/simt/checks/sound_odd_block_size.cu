// check: sound
// near: barrier_divergence
// what: blocks of 50 threads: the last warp has 18 lanes, the barriers are for all that there are

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void tournament(const int* in, int* winners, int n) {
  __shared__ int best[50];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  best[t] = i < n ? in[i] : -1;
  __syncthreads();
  for (int width = blockDim.x; width > 1;) {
    int half = width / 2, odd = width - half;
    if (t < half) best[t] = max(best[t], best[t + odd]);
    __syncthreads();
    width = odd;
  }
  if (t == 0) winners[blockIdx.x] = best[0];
}

int main() {
  const int n = 230, blocks = 5;
  std::vector<int> host(n), winners(blocks);
  for (int i = 0; i < n; i++) host[i] = i * 71 % 229;
  int *d_in, *d_winners;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_winners, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  tournament<<<blocks, 50>>>(d_in, d_winners, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(winners.data(), d_winners, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  for (int w : winners) printf("%d ", w);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_winners));
  return 0;
}
