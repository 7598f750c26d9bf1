// check: schedule
// what: survivors are appended where an atomic counter says, and their checksum depends on the order

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Hit { int ray; float distance; };

__global__ void trace(Hit* hits, int* count, int n) {
  int ray = blockIdx.x * blockDim.x + threadIdx.x;
  if (ray >= n || ray % 7 != 3) return;
  hits[atomicAdd(count, 1)] = {ray, 0.5f * ray};  // defect
}

int main() {
  const int n = 1000;
  Hit* hits;
  int *count, found;
  CHECK(cudaMalloc(&hits, n * sizeof(Hit)));
  CHECK(cudaMalloc(&count, sizeof(int)));
  CHECK(cudaMemset(count, 0, sizeof(int)));
  trace<<<8, 128>>>(hits, count, n);
  CHECK(cudaMemcpy(&found, count, sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<Hit> host(found);
  CHECK(cudaMemcpy(host.data(), hits, found * sizeof(Hit), cudaMemcpyDeviceToHost));
  unsigned checksum = 0;
  for (const Hit& hit : host) checksum = 31 * checksum + hit.ray;
  printf("%d hits, checksum %u\n", found, checksum);
  CHECK(cudaFree(hits));
  CHECK(cudaFree(count));
}
