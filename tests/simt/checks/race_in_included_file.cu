// check: race
// what: a template in an included file sums over a block and lacks a barrier before its loop
// source: included_block_sum.h
// array: scratch

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "included_block_sum.h"

__global__ void norms(const float* rows, float* out) {
  __shared__ float scratch[64];
  const float value = rows[blockIdx.x * 64 + threadIdx.x];
  const float sum = sum_in_block(scratch, value * value);
  if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(sum);
}

int main() {
  float host[256] = {1, 2, 3}, *rows, *out;
  cudaMalloc(&rows, sizeof host);
  cudaMalloc(&out, 4 * sizeof(float));
  cudaMemcpy(rows, host, sizeof host, cudaMemcpyHostToDevice);
  norms<<<4, 64>>>(rows, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(rows);
  cudaFree(out);
}
