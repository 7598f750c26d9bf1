// check: illegal_address
// what: the second argument is the data of a std::vector
// array: shift

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add_rows(float* table, const float* shift, int rows, int columns) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  for (int row = 0; row < rows; row++) table[row * columns + column] += shift[column];  // defect
}

int main() {
  const int rows = 5, columns = 40;
  std::vector<float> shift(columns, 0.5f);
  float* table;
  CHECK(cudaMalloc(&table, rows * columns * sizeof(float)));
  CHECK(cudaMemset(table, 0, rows * columns * sizeof(float)));
  add_rows<<<2, 32>>>(table, shift.data(), rows, columns);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(table);
}
