// check: int_overflow
// what: near the end of 2^31 - 1 elements the loop's index itself overflows when the stride is added

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

// Counts multiples of 1000 among the numbers of first … n - 1.
__global__ void count_round(int first, int n, int* count) {
  int stride = gridDim.x * blockDim.x, mine = 0, steps = 0;
  for (int i = first + blockIdx.x * blockDim.x + threadIdx.x; i < n && steps < 50; i += stride, steps++) {  // defect
    if (i % 1000 == 0) mine++;
  }
  if (mine) atomicAdd(count, mine);
}

int main() {
  int count, *d_count;
  CHECK(cudaMalloc(&d_count, sizeof(int)));
  CHECK(cudaMemset(d_count, 0, sizeof(int)));
  count_round<<<4, 128>>>(2147483647 - 9999, 2147483647, d_count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", count);
  CHECK(cudaFree(d_count));
  return 0;
}
