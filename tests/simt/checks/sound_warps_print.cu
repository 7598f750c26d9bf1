// check: sound
// near: schedule
// what: each warp prints a line, the host prints how long the kernel took and its rate

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void work(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = sqrtf(i);
  if (threadIdx.x % 32 == 0) printf("block %d warp %d starts at %d\n", blockIdx.x, threadIdx.x / 32, i);
}

int main() {
  const int n = 1 << 10;
  float *x, elapsed;
  cudaEvent_t start, stop;
  CHECK(cudaMalloc(&x, n * sizeof(float)));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  auto from = std::chrono::steady_clock::now();
  CHECK(cudaEventRecord(start));
  work<<<8, 128>>>(x, n);
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  CHECK(cudaEventElapsedTime(&elapsed, start, stop));
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
  printf("kernel: %.3f ms\n", elapsed);
  printf("with launch: %g ms, %.2f GB/s\n", took.count(), n * sizeof(float) / elapsed / 1e6);
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaFree(x));
}
