// check: race
// array: x
// what: a kernel that four host threads launch at the same time: each block reads its neighbour's element

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add_neighbour(int* x, int n) {
  int i = 64 * blockIdx.x + threadIdx.x;
  int next = i + 64 < n ? x[i + 64] : 0;  // defect
  if (i < n) x[i] = x[i] + next;  // other
}

void work(int number, int* result) {
  const int n = 1000;
  std::vector<int> host(n, number);
  int* x;
  CHECK(cudaMalloc(&x, n * sizeof(int)));
  CHECK(cudaMemcpy(x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int pass = 0; pass < 20; ++pass) {
    add_neighbour<<<(n + 63) / 64, 64>>>(x, n);
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
