// check: sound
// near: race
// what: one warp follows another through an array, by a volatile counter in shared memory, with fences on both sides

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void hand_over(int* out) {
  __shared__ int items[20], arrived;
  __shared__ volatile int filled;
  if (threadIdx.x == 0) filled = arrived = 0;
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  if (atomicAdd(&arrived, 1) == 0) {  // the warp that comes first
    for (int i = 0; i < 20; ++i) {
      items[i] = i;
      __threadfence_block();
      filled = i + 1;
    }
  } else {
    for (int i = 0; i < 20; ++i) {
      while (filled <= i) {
      }
      __threadfence_block();
      out[i] = items[i];
    }
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
