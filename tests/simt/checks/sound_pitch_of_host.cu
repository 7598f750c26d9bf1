// check: sound
// near: out_of_bounds
// what: rows are copied between memory with a pitch and host memory without gaps

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
  const int rows = 12, columns = 50, n = rows * columns;
  std::vector<float> x(n, 3.0f);
  float* d_x;
  size_t pitch;
  CHECK(cudaMallocPitch(&d_x, &pitch, columns * sizeof(float), rows));
  CHECK(cudaMemset2D(d_x, pitch, 0, pitch, rows));
  CHECK(cudaMemcpy2D(d_x, pitch, x.data(), columns * sizeof(float), columns * sizeof(float), rows, cudaMemcpyHostToDevice));
  square<<<(n + 127) / 128, 128>>>(d_x, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy2D(x.data(), columns * sizeof(float), d_x, pitch, columns * sizeof(float), rows, cudaMemcpyDeviceToHost));
  printf("%g\n", x[7]);
  CHECK(cudaFree(d_x));
  return 0;
}
