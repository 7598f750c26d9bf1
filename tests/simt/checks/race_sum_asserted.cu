// check: race
// array: sums
// what: a tree sum lacks the barrier in its loop, and an assertion after it fails

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add(const int* in, int* out) {
  __shared__ int sums[256];
  int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2)
    if (t < half) sums[t] += sums[t + half];  // defect
  __syncthreads();
  assert(sums[0] == 256 * 255 / 2);
  if (t == 0) *out = sums[0];
}

int main() {
  int host[256], *in, *out;
  for (int i = 0; i < 256; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof(int)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  add<<<1, 256>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(in);
  cudaFree(out);
}
