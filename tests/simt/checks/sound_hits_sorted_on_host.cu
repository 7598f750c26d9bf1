// check: sound
// near: schedule
// what: hits are appended in any order by an atomic counter, and the host sorts them before it prints

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Hit { int ray; float distance; };

__global__ void trace(Hit* hits, int* count, int n) {
  int ray = blockIdx.x * blockDim.x + threadIdx.x;
  if (ray >= n || ray % 7 != 3) return;
  hits[atomicAdd(count, 1)] = {ray, 0.5f * ray};
}

int main() {
  const int n = 500;
  Hit* hits;
  int *count, found;
  CHECK(cudaMalloc(&hits, n * sizeof(Hit)));
  CHECK(cudaMalloc(&count, sizeof(int)));
  CHECK(cudaMemset(count, 0, sizeof(int)));
  trace<<<4, 128>>>(hits, count, n);
  CHECK(cudaMemcpy(&found, count, sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<Hit> host(found);
  CHECK(cudaMemcpy(host.data(), hits, found * sizeof(Hit), cudaMemcpyDeviceToHost));
  std::sort(host.begin(), host.end(), [](const Hit& a, const Hit& b) { return a.ray < b.ray; });
  for (int i = 0; i < 5; i++) printf("%d at %.1f\n", host[i].ray, host[i].distance);
  CHECK(cudaFree(hits));
  CHECK(cudaFree(count));
}
