// check: race
// what: a lock made of atomics alone: without fences the next owner may read the total from before
// array: total

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int lock = 0;

__global__ void longest_run(const int* in, int n, int* total) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&sum, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {}
    total[0] = total[0] + sum, total[1] = max(total[1], sum);  // defect
    atomicExch(&lock, 0);
  }
}

int main() {
  const int n = 500;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 13;
  int total[2], *d_in, *d_total;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_total, sizeof(total)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_total, 0, sizeof(total)));
  longest_run<<<8, 64>>>(d_in, n, d_total);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(total, d_total, sizeof(total), cudaMemcpyDeviceToHost));
  printf("%d %d\n", total[0], total[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_total));
  return 0;
}
