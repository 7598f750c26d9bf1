// check: sound
// near: race
// what: one warp waits for another at a volatile flag in shared memory, with fences on both sides

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void hand_over(int* out) {
  __shared__ int box, arrived;
  __shared__ volatile int full;
  if (threadIdx.x == 0) full = arrived = box = 0;
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  if (atomicAdd(&arrived, 1) == 0) {  // the warp that comes first
    box = 42;
    __threadfence_block();
    full = 1;
  } else {
    while (full == 0) {
    }
    __threadfence_block();
    out[0] = box;
  }
}

int main() {
  int host[64], *out;
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemset(out, 0, sizeof host));
  hand_over<<<1, 64>>>(out);
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d\n", host[0]);
  CHECK(cudaFree(out));
}
