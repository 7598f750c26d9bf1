// check: uninitialized
// what: a function that sorts numbers into three classes has no return for the middle one
// says: return

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int class_of(float x) {
  if (x < -1) return 0;
  if (x > 1) return 2;
}  // defect

__global__ void classify(const float* x, int* classes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) classes[i] = class_of(x[i]);
}

int main() {
  const int n = 300;
  std::vector<float> x(n);
  for (int i = 0; i < n; ++i) x[i] = (i % 7 - 3) * 0.75f;
  std::vector<int> classes(n);
  float* d_x;
  int* d_classes;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMalloc(&d_classes, n * sizeof(int)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  classify<<<(n + 127) / 128, 128>>>(d_x, d_classes, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(classes.data(), d_classes, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", classes[0]);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_classes));
  return 0;
}
