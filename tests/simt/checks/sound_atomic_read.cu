// check: sound
// near: race
// what: the counter is only ever touched by atomics, also to test the limit; the output is sorted on the host

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void first_hits(const int* in, int n, int* hits, int* found, int limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n || in[i] % 7 != 0) return;
  if (atomicAdd(found, 0) < limit) {
    int slot = atomicAdd(found, 1);
    if (slot < limit) hits[slot] = in[i];
  }
}

int main() {
  const int n = 300, limit = 64;
  std::vector<int> host(n), hits(limit);
  for (int i = 0; i < n; i++) host[i] = i;
  int count, *d_in, *d_hits, *d_found;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_hits, limit * sizeof(int)));
  CHECK(cudaMalloc(&d_found, sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_found, 0, sizeof(int)));
  first_hits<<<5, 64>>>(d_in, n, d_hits, d_found, limit);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, d_found, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(hits.data(), d_hits, std::min(count, limit) * sizeof(int), cudaMemcpyDeviceToHost));
  std::sort(hits.begin(), hits.begin() + std::min(count, limit));
  printf("%d hits, %d, %d\n", count, hits[0], hits[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_hits));
  CHECK(cudaFree(d_found));
  return 0;
}
