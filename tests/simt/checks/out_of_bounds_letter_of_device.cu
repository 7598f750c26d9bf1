// check: out_of_bounds
// what: a kernel named i reads past the end of a device variable named e
// array: e
// index: 16

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ float e[16];
__device__ float f[16];

__global__ void s() {
  e[threadIdx.x] = threadIdx.x;
  f[threadIdx.x] = 0;
}

__global__ void i(float* y, int n) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < n) {
    float* p = e + t;
    y[t] = *p + p[1];  // defect
  }
}

int main() {
  float* y;
  CHECK(cudaMalloc(&y, 16 * sizeof(float)));
  s<<<1, 16>>>();
  i<<<2, 8>>>(y, 16);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(y));
}
