// check: int_overflow
// what: the product of three sizes overflows, and the kernel reads at the negative index that follows

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Shape { int depth, height, width; };

__global__ void last_element(const float* volume, Shape shape, float* out) {
  int plane = shape.height * shape.width;
  int last = shape.depth * plane;  // defect
  out[0] = volume[last - 1];
}

int main() {
  float *volume, *out;
  CHECK(cudaMalloc(&volume, 4096));
  CHECK(cudaMemset(volume, 0, 4096));
  CHECK(cudaMalloc(&out, sizeof(float)));
  last_element<<<1, 1>>>(volume, Shape{1300, 1300, 1300}, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(volume);
  cudaFree(out);
}
