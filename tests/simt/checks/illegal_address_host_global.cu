// check: illegal_address
// what: a kernel scales by a global variable of the host
// array: scale

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

float scale = 2.5f;

__global__ void scale_all(float* x) { x[threadIdx.x] = threadIdx.x * scale; }  // defect

int main() {
  float* x;
  cudaMalloc(&x, 32 * sizeof(float));
  scale_all<<<1, 32>>>(x);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(x);
}
