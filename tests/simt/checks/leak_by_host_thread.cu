// check: leak
// what: each host thread allocates a buffer, and only threads with an even number free theirs

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void clear(int* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] = 0;
}

void work(int number) {
  int* buffer;
  CHECK(cudaMalloc(&buffer, 100 * sizeof(int)));  // defect
  clear<<<1, 128>>>(buffer, 100);
  CHECK(cudaDeviceSynchronize());
  if (number % 2 == 0) CHECK(cudaFree(buffer));
}

int main() {
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; number++) threads.emplace_back(work, number);
  for (auto& thread : threads) thread.join();
}
