// check: race
// what: the last block adds up the others' sums; without __threadfence() a block's count may arrive before its sum
// array: sums

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ unsigned int blocks_done = 0;

__global__ void reduce(const float* in, int n, float* sums, float* result) {
  __shared__ float part[64];
  __shared__ bool is_last;
  int t = threadIdx.x;
  float mine = 0;
  for (int i = blockIdx.x * 64 + t; i < n; i += 64 * gridDim.x) mine += in[i];
  part[t] = mine;
  __syncthreads();
  if (t == 0) {
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += part[k];
    sums[blockIdx.x] = sum;  // other
    is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && t == 0) {
    float total = 0;
    for (int b = 0; b < gridDim.x; b++) total += sums[b];  // defect
    *result = total;
  }
}

int main() {
  const int n = 1000, blocks = 5;
  std::vector<float> host(n, 1.0f);
  float result, *d_in, *d_sums, *d_result;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_sums, blocks * sizeof(float)));
  CHECK(cudaMalloc(&d_result, sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_sums, 0, blocks * sizeof(float)));
  reduce<<<blocks, 64>>>(d_in, n, d_sums, d_result);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&result, d_result, sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f\n", result);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_sums));
  CHECK(cudaFree(d_result));
  return 0;
}
