// check: misaligned
// what: the rest of a buffer behind a header of three floats is cleared by float4, with a constant value
// array: buffer

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void clear(float* buffer, int n) {
  float4* rest = reinterpret_cast<float4*>(buffer + 3);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i + 3 < n - 3) rest[i] = make_float4(0.f, 0.f, 0.f, 0.f);  // defect
}

int main() {
  const int n = 131;
  float* buffer;
  CHECK(cudaMalloc(&buffer, n * sizeof(float)));
  clear<<<1, 64>>>(buffer, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(buffer);
}
