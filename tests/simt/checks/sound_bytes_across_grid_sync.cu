// check: sound
// near: uninitialized
// what: a cooperative kernel writes bytes, waits for the whole grid and reads them as words

#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace cg = cooperative_groups;

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void spread(unsigned char* bytes, unsigned* words, int n) {
  cg::grid_group grid = cg::this_grid();
  int i = static_cast<int>(grid.thread_rank());
  if (i < n) bytes[i] = 3 * i;
  grid.sync();
  if (i < n / 4) words[i] = reinterpret_cast<const unsigned*>(bytes)[n / 4 - 1 - i];
}

int main() {
  int n = 512;
  unsigned char* bytes;
  unsigned *words, host[128];
  CHECK(cudaMalloc(&bytes, n));
  CHECK(cudaMalloc(&words, n));
  void* arguments[] = {&bytes, &words, &n};
  CHECK(cudaLaunchCooperativeKernel((void*)spread, dim3(4), dim3(128), arguments, 0, nullptr));
  CHECK(cudaMemcpy(host, words, n, cudaMemcpyDeviceToHost));
  printf("%x\n", host[0]);
  CHECK(cudaFree(bytes));
  CHECK(cudaFree(words));
}
