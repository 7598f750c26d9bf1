// check: illegal_address
// what: a kernel that updates its weights finds them in constant memory
// array: weights

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__constant__ float weights[16];

__device__ void move(float* w, float gradient) {
  *w -= 0.1f * gradient;  // defect
}

__global__ void train(const float* gradients) {
  if (threadIdx.x < 16) move(const_cast<float*>(&weights[threadIdx.x]), gradients[threadIdx.x]);
}

int main() {
  float host[16] = {1, 2, 3}, *gradients;
  CHECK(cudaMemcpyToSymbol(weights, host, sizeof host));
  CHECK(cudaMalloc(&gradients, sizeof host));
  CHECK(cudaMemcpy(gradients, host, sizeof host, cudaMemcpyHostToDevice));
  train<<<1, 32>>>(gradients);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(gradients);
}
