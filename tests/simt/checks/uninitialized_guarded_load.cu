// check: uninitialized
// what: threads past n leave their element of the shared array unset, and the reduction adds it all the same
// array: part

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void block_sums(const float* in, float* sums, int n) {
  __shared__ float part[96];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (i < n) part[t] = in[i];
  for (int count = blockDim.x; count > 1; count = (count + 1) / 2) {
    __syncthreads();
    int half = (count + 1) / 2;
    if (t + half < count) part[t] += part[t + half];  // defect
  }
  if (t == 0) sums[blockIdx.x] = part[0];
}

int main() {
  const int n = 500, threads = 96, blocks = (n + threads - 1) / threads;
  std::vector<float> host(n, 1.0f), sums(blocks);
  float *d_in, *d_sums;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_sums, blocks * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  block_sums<<<blocks, threads>>>(d_in, d_sums, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_sums, blocks * sizeof(float), cudaMemcpyDeviceToHost));
  for (float s : sums) printf("%.0f ", s);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_sums));
  return 0;
}
