// check: warp_divergence
// what: a block of 40 threads adds up by shuffles of full warps
// says: has only 40 threads

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void add(const int* in, int* out) {
  int value = in[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);  // defect
  out[threadIdx.x] = value;
}

int main() {
  int host[40], *in, *out;
  for (int i = 0; i < 40; i++) host[i] = i;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  add<<<1, 40>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(in);
  cudaFree(out);
}
