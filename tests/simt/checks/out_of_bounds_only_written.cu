// check: out_of_bounds
// what: the halo at the end of a shared array is written one place too far, and nothing reads that array
// array: edge

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void keep_edges(const float* in, float* out, int radius) {
  __shared__ float edge[68];
  int i = threadIdx.x;
  float* at = &edge[radius];
  at[i] = in[i];
  if (i < radius + 1) at[64 + i] = in[63];  // defect
  out[i] = 2 * in[i];
}

int main() {
  float host[64] = {}, *in, *out;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  keep_edges<<<1, 64>>>(in, out, 2);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
