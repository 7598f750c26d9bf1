// check: out_of_bounds
// what: rows are copied from the middle of malloc's memory, and the last copy reads past its end
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
  const int rows = 5, columns = 120, n = rows * columns;
  float* const x = (float*)malloc(n * sizeof(float));
  for (int i = 0; i < n; ++i) x[i] = i;
  float* d_x;
  CHECK(cudaMalloc(&d_x, (n + columns) * sizeof(float)));
  for (int row = 0; row <= rows; ++row)
    CHECK(cudaMemcpy(d_x + row * columns, x + row * columns - columns / 2 * (row > 0), columns * sizeof(float),  // defect
                     cudaMemcpyHostToDevice));
  square<<<(n + 127) / 128, 128>>>(d_x, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(x, d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", x[7]);
  CHECK(cudaFree(d_x));
  free(x);
  return 0;
}
