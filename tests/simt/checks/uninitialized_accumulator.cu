// check: uninitialized
// what: the sum is added up in memory fresh from cudaMalloc, which holds anything
// array: sum
// index: 0

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void dot(const int* a, const int* b, int n, int* sum) {
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += a[i] * b[i];
  for (int offset = 16; offset > 0; offset /= 2) mine += __shfl_down_sync(0xffffffff, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);  // defect
}

int main() {
  const int n = 700;
  std::vector<int> a(n, 2), b(n, 3);
  int sum, *d_a, *d_b, *d_sum;
  CHECK(cudaMalloc(&d_a, n * sizeof(int)));
  CHECK(cudaMalloc(&d_b, n * sizeof(int)));
  CHECK(cudaMalloc(&d_sum, sizeof(int)));
  CHECK(cudaMemcpy(d_a, a.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  dot<<<3, 96>>>(d_a, d_b, n, d_sum);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&sum, d_sum, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", sum);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_sum));
  return 0;
}
