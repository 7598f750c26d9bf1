// check: sound
// near: out_of_bounds
// what: the same function of an included file is called for a line with a halo of its radius

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "included_moving_sum.h"

__global__ void smooth(const float* in, float* out, int n) {
  __shared__ float line[68];
  int i = threadIdx.x;
  line[i + 2] = i < n ? in[i] : 0;
  if (i < 2) line[i] = line[66 + i] = 0;
  __syncthreads();
  if (i < n) out[i] = sum_of_window(line, i + 2, 2);
}

int main() {
  float host[60], *in, *out;
  for (int i = 0; i < 60; i++) host[i] = i;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  smooth<<<1, 64>>>(in, out, 60);
  cudaError_t error = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("%s %f\n", cudaGetErrorString(error), host[0]);
  cudaFree(in);
  cudaFree(out);
}
