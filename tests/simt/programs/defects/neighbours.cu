/*
Each element plus its right neighbour, with two mistakes, for which a GPU may well print the right result.

    python -m simt check neighbours.cu
*/

#include <cstdio>
#include <cuda_runtime.h>

__global__ void add_neighbour(const int* in, int* out, int n) {
  __shared__ int tile[129];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = in[i];
  if (threadIdx.x == 0) tile[128] = in[i + 128];      // past the end in the last block
  out[i] = tile[threadIdx.x] + tile[threadIdx.x + 1];      // no __syncthreads() before
}

int main() {
  const int n = 256;
  int host[n], *in, *out;
  for (int i = 0; i < n; i++) host[i] = 1;
  cudaMalloc(&in, sizeof(host));
  cudaMalloc(&out, sizeof(host));
  cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice);
  add_neighbour<<<n / 128, 128>>>(in, out, n);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  printf("first %d\n", host[0]);
  cudaFree(in);
  cudaFree(out);
  return 0;
}
