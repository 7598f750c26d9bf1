// check: leak
// what: managed memory is taken for plain memory and never freed

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void triangle_numbers(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * (i + 1) / 2;
}

int main() {
  const int n = 100;
  int* numbers;
  CHECK(cudaMallocManaged(&numbers, n * sizeof(int)));  // defect
  triangle_numbers<<<4, 32>>>(numbers, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  printf("%d\n", numbers[n - 1]);
  return 0;
}
