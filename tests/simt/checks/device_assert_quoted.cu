// check: device_assert
// what: an assertion on the elements of a row fails in the last row
// says: row[column] >= 0 && row[column] < limit

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void check_labels(const int* labels, int columns, int limit) {
  const int* row = labels + blockIdx.x * columns;
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    assert(row[column] >= 0 && row[column] < limit);  // defect
}

int main() {
  int host[4 * 50], *labels;
  for (int i = 0; i < 200; i++) host[i] = i % 10;
  host[170] = 10;
  cudaMalloc(&labels, sizeof host);
  cudaMemcpy(labels, host, sizeof host, cudaMemcpyHostToDevice);
  check_labels<<<4, 32>>>(labels, 50, 10);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(labels);
}
