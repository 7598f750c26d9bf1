// check: uninitialized
// what: tasks started with std::async launch at once on memory that no one has set
// array: totals

#include <cstdio>
#include <cstdlib>
#include <future>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void accumulate(const int* in, int* totals, int n) {
  int i = threadIdx.x;
  if (i < n) totals[i] += in[i];  // defect
}

int task(int n) {
  std::vector<int> host(n, 1);
  int *in, *totals;
  CHECK(cudaMalloc(&in, n * sizeof(int)));
  CHECK(cudaMalloc(&totals, n * sizeof(int)));
  CHECK(cudaMemcpy(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  accumulate<<<1, 64>>>(in, totals, n);
  CHECK(cudaMemcpy(host.data(), totals, n * sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(in));
  CHECK(cudaFree(totals));
  return n;
}

int main() {
  std::vector<std::future<int>> tasks;
  for (int n = 40; n < 44; n++) tasks.push_back(std::async(std::launch::async, task, n));
  for (auto& each : tasks) printf("%d\n", each.get());
}
