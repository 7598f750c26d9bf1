// check: sound
// near: schedule
// what: blocks print lines, in any order, and each thread what it computed

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void greet(int* out) {
  out[4 * blockIdx.x + threadIdx.x] = threadIdx.x * threadIdx.x;
  printf("thread %d of block %d: %d\n", threadIdx.x, blockIdx.x, out[4 * blockIdx.x + threadIdx.x]);
}

int main() {
  int host[32], *out;
  CHECK(cudaMalloc(&out, sizeof host));
  printf("before\n");
  greet<<<8, 4>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("after: %d\n", host[7]);
  CHECK(cudaFree(out));
}
