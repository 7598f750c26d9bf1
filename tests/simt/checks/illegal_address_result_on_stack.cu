// check: illegal_address
// what: the kernel gets the address of the host's local variable for its result
// array: result

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void maximum(const int* values, int n, int* result) {
  int most = values[0];
  for (int i = 1; i < n; i++) most = max(most, values[i]);
  *result = most;  // defect
}

int main() {
  const int n = 20;
  int result = -1, host[n], *values;
  for (int i = 0; i < n; i++) host[i] = 3 * i % 11;
  cudaMalloc(&values, sizeof host);
  cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice);
  maximum<<<1, 1>>>(values, n, &result);
  cudaError_t error = cudaDeviceSynchronize();
  printf("%s %d\n", cudaGetErrorString(error), result);
  cudaFree(values);
}
