// check: sound
// near: race
// what: the programming guide's reduction: sums in volatile memory, a fence, a counted arrival, and the last block adds up

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ unsigned int count = 0;

__device__ int block_total(int v) {
  __shared__ int warps[2];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
  __syncthreads();
  return warps[0] + warps[1];
}

__global__ void sum(const int* in, int n, volatile int* result) {
  __shared__ bool is_last;
  int i = blockIdx.x * 64 + threadIdx.x;
  int mine = block_total(i < n ? in[i] : 0);
  if (threadIdx.x == 0) {
    result[blockIdx.x] = mine;
    __threadfence();
    is_last = atomicInc(&count, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last) {
    int total = block_total(threadIdx.x < gridDim.x ? result[threadIdx.x] : 0);
    if (threadIdx.x == 0) {
      result[0] = total;
      count = 0;  // ready for the next launch
    }
  }
}

int main() {
  const int n = 700, blocks = (n + 63) / 64;
  std::vector<int> host(n, 3);
  int result, *d_in, *d_result;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_result, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int launch = 0; launch < 2; launch++) {
    sum<<<blocks, 64>>>(d_in, n, d_result);
    CHECK(cudaGetLastError());
  }
  CHECK(cudaMemcpy(&result, d_result, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", result);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_result));
  return 0;
}
