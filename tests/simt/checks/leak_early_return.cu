// check: leak
// what: where nothing is left to do the function returns without freeing its buffer

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_odd(const int* in, int n, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2) atomicAdd(count, 1);
}

int odd_numbers(const std::vector<int>& numbers) {
  int n = numbers.size(), count = 0, *d_in, *d_count;
  CHECK(cudaMalloc(&d_count, sizeof(int)));  // defect
  CHECK(cudaMemset(d_count, 0, sizeof(int)));
  if (n == 0) return 0;  // other
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  count_odd<<<(n + 31) / 32, 32>>>(d_in, n, d_count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_count));
  return count;
}

int main() {
  printf("%d\n", odd_numbers({1, 2, 3, 5, 8, 13}));
  printf("%d\n", odd_numbers({}));
  return 0;
}
