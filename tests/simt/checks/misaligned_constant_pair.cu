// check: misaligned
// what: a pair of constants marks the end of each row at an odd place of shared memory
// array: rows

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void mark_ends(int* out) {
  __shared__ alignas(8) int rows[4][8];
  rows[threadIdx.y][threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) *(int2*)&rows[threadIdx.y][5] = int2{-1, -2};  // defect
  __syncthreads();
  out[8 * threadIdx.y + threadIdx.x] = rows[threadIdx.y][threadIdx.x];
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 32 * sizeof(int)));
  mark_ends<<<1, dim3(8, 4)>>>(out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(out);
}
