// check: sound
// near: schedule
// what: the program prints clock values, times, and words that follow from them

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#include <chrono>

__global__ void work(float* x, long long* cycles) {
  long long begin = clock64();
  x[64 * blockIdx.x + threadIdx.x] = 2.0f * threadIdx.x;
  if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
}

int main() {
  const int blocks = 50;
  long long host[blocks], *cycles;
  float* x;
  CHECK(cudaMalloc(&x, blocks * 64 * sizeof(float)));
  CHECK(cudaMalloc(&cycles, sizeof host));
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  auto began = std::chrono::steady_clock::now();
  CHECK(cudaEventRecord(start));
  work<<<blocks, 64>>>(x, cycles);
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  float ms;
  CHECK(cudaEventElapsedTime(&ms, start, stop));
  CHECK(cudaMemcpy(host, cycles, sizeof host, cudaMemcpyDeviceToHost));
  printf("%.1f s, %.1f ms, %s\n", seconds, ms, ms < 0.2f ? "fast" : "slow");
  for (int b = 0; b < 3; ++b) printf("block %d: %lld cycles\n", b, host[b]);
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaFree(x));
  CHECK(cudaFree(cycles));
}
