// check: sound
// near: race
// what: host threads launch on one buffer, one at a time under a mutex, and read a table that all share

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

std::mutex turn;

__global__ void add(int* sums, const int* table, int n, int from) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sums[i] += table[(i + from) % n];
}

void work(int* sums, const int* table, int n, int number) {
  for (int pass = 0; pass < 6; pass++) {
    std::lock_guard<std::mutex> lock(turn);
    add<<<4, 32>>>(sums, table, n, number + pass);
    CHECK(cudaDeviceSynchronize());
  }
}

int main() {
  const int n = 120;
  int host[n], *sums, *table;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&sums, sizeof host));
  CHECK(cudaMalloc(&table, sizeof host));
  CHECK(cudaMemset(sums, 0, sizeof host));
  CHECK(cudaMemcpy(table, host, sizeof host, cudaMemcpyHostToDevice));
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; number++) threads.emplace_back(work, sums, table, n, number);
  for (auto& thread : threads) thread.join();
  CHECK(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d\n", host[5]);
  CHECK(cudaFree(sums));
  CHECK(cudaFree(table));
}
