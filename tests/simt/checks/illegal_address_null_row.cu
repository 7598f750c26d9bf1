// check: illegal_address
// what: of an array of row pointers on the device one was never set

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fill(float* const* rows, int columns) {
  float* row = rows[blockIdx.x];
  for (int c = threadIdx.x; c < columns; c += blockDim.x) row[c] = c;  // defect
}

int main() {
  float *host[4] = {}, **rows;
  for (int r = 0; r < 3; r++) CHECK(cudaMalloc(&host[r], 50 * sizeof(float)));
  CHECK(cudaMalloc(&rows, sizeof host));
  CHECK(cudaMemcpy(rows, host, sizeof host, cudaMemcpyHostToDevice));
  fill<<<4, 32>>>(rows, 50);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  for (float* row : host) cudaFree(row);
  cudaFree(rows);
}
