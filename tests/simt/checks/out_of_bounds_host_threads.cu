// check: out_of_bounds
// what: of three host threads that launch at once one passes a length that is too large
// array: x

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void square(float* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = i * i;  // defect
}

void work(int length) {
  float* x;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMalloc(&x, 500 * sizeof(float)));
  for (int pass = 0; pass < 5; pass++) square<<<1, 64, 0, stream>>>(x, length);
  cudaStreamSynchronize(stream);
  cudaFree(x);
  cudaStreamDestroy(stream);
}

int main() {
  std::vector<std::thread> threads;
  for (int length : {500, 520, 480}) threads.emplace_back(work, length);
  for (auto& thread : threads) thread.join();
}
