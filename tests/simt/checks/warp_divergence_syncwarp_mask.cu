// check: warp_divergence
// what: all 32 lanes call __syncwarp with a mask of the lower 16: the upper ones are not in it

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void swap_pairs(const int* in, int* out) {
  __shared__ int line[32];
  int lane = threadIdx.x;
  line[lane] = in[lane];
  __syncwarp(0x0000ffff);  // defect
  __syncthreads();
  out[lane] = line[lane ^ 1];
}

int main() {
  int host[32], *d_in, *d_out;
  for (int i = 0; i < 32; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  swap_pairs<<<1, 32>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[31]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
