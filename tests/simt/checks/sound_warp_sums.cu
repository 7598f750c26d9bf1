// check: sound
// near: uninitialized
// what: five warps leave a sum each; lanes of the first warp read only those and take zero for the rest

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int warp_sum(int v) {
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_down_sync(0xffffffff, v, offset);
  return v;
}

__global__ void sum_of_squares(int* out) {
  __shared__ int warp_sums[32];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  int v = warp_sum(t * t);
  if (lane == 0) warp_sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    v = lane < blockDim.x / 32 ? warp_sums[lane] : 0;
    v = warp_sum(v);
    if (lane == 0) *out = v;
  }
}

int main() {
  int result, *d_out;
  CHECK(cudaMalloc(&d_out, sizeof(int)));
  sum_of_squares<<<1, 160>>>(d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&result, d_out, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", result);
  CHECK(cudaFree(d_out));
  return 0;
}
