// check: sound
// near: leak
// what: a destructor frees the buffer on every way out of the function

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_odd(const int* in, int n, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2) atomicAdd(count, 1);
}

struct Buffer {
  int* data;
  explicit Buffer(int count) { CHECK(cudaMalloc(&data, count * sizeof(int))); }
  ~Buffer() { CHECK(cudaFree(data)); }
};

int odd_numbers(const std::vector<int>& numbers) {
  int n = numbers.size(), count = 0;
  Buffer counter(1);
  CHECK(cudaMemset(counter.data, 0, sizeof(int)));
  if (n == 0) return 0;
  Buffer in(n);
  CHECK(cudaMemcpy(in.data, numbers.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  count_odd<<<(n + 31) / 32, 32>>>(in.data, n, counter.data);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, counter.data, sizeof(int), cudaMemcpyDeviceToHost));
  return count;
}

int main() {
  printf("%d\n", odd_numbers({1, 2, 3, 5, 8, 13}));
  printf("%d\n", odd_numbers({}));
  return 0;
}
