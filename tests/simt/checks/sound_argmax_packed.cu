// check: sound
// near: schedule
// what: value and index in one 64-bit atomicMax: of equal values the one with the lowest index wins, in any order

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void argmax(const int* in, int n, unsigned long long* best) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(best, (unsigned long long)in[i] << 32 | (0xffffffffu - i));
}

int main() {
  const int n = 150;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i * 3 % 20;
  int* d_in;
  unsigned long long best = 0, *d_best;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMalloc(&d_best, sizeof(best)));
  CHECK(cudaMemcpy(d_best, &best, sizeof(best), cudaMemcpyHostToDevice));
  argmax<<<5, 32>>>(d_in, n, d_best);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&best, d_best, sizeof(best), cudaMemcpyDeviceToHost));
  printf("%d at %u\n", (int)(best >> 32), 0xffffffffu - (unsigned)best);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_best));
  return 0;
}
