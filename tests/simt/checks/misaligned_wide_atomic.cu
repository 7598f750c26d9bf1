// check: misaligned
// what: a 64-bit counter is updated atomically at an odd index of an array of 32-bit ones
// array: counters

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count(unsigned* counters, const int* in) {
  auto* total = reinterpret_cast<unsigned long long*>(counters + 3);
  if (in[threadIdx.x] > 5) atomicAdd(total, 1ull);  // defect
}

int main() {
  int host[64], *in;
  unsigned* counters;
  for (int i = 0; i < 64; i++) host[i] = i % 10;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&counters, 8 * sizeof(unsigned)));
  CHECK(cudaMemset(counters, 0, 8 * sizeof(unsigned)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  count<<<1, 64>>>(counters, in);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(in));
  CHECK(cudaFree(counters));
}
