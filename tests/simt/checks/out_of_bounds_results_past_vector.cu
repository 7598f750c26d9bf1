// check: out_of_bounds
// what: the results are copied to a vector that has a quarter of their bytes
// thread: none

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void square(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= x[i];
}

int main() {
  const int n = 1000;
  std::vector<float> x(n, 3.0f), squares(n / 4);
  float* d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  square<<<(n + 127) / 128, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(squares.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost));  // defect
  printf("%g\n", squares[7]);
  CHECK(cudaFree(d_x));
  return 0;
}
