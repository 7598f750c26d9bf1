// check: sound
// near: race
// what: four host threads launch kernels and copy at the same time, each with memory of its own

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void twice(int* x, int n) {
  int i = 64 * blockIdx.x + threadIdx.x;
  if (i < n) x[i] = 2 * x[i];
}

void work(int number, int* result) {
  const int n = 1000;
  std::vector<int> host(n, number);
  int* x;
  CHECK(cudaMalloc(&x, n * sizeof(int)));
  CHECK(cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int pass = 0; pass < 20; ++pass) {
    twice<<<(n + 63) / 64, 64>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(host.data(), x, n * sizeof(int), cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(x));
  *result = host[5];
}

int main() {
  int results[4];
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) threads.emplace_back(work, number, results + number);
  for (auto& thread : threads) thread.join();
  for (int result : results) printf("%d\n", result);
}
