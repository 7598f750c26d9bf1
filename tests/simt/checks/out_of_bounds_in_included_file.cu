// check: out_of_bounds
// what: a function in an included file reads the neighbours of the first element
// source: included_moving_sum.h
// array: line
// index: -2

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "included_moving_sum.h"

__global__ void smooth(const float* line, float* out, int n) {
  int i = threadIdx.x;
  if (i < n - 2) out[i] = sum_of_window(line, i, 2);
}

int main() {
  float host[40] = {}, *line, *out;
  cudaMalloc(&line, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(line, host, sizeof host, cudaMemcpyHostToDevice);
  smooth<<<1, 64>>>(line, out, 40);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(line);
  cudaFree(out);
}
