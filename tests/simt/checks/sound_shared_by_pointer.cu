// check: sound
// near: out_of_bounds
// what: a helper gets a pointer into the middle of a shared array and stays within it

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int sum_of(const int* values, int count) {
  int sum = 0;
  for (int k = 0; k < count; k++) sum += values[k];
  return sum;
}

__global__ void upper_half(const int* in, int* out) {
  __shared__ int low[64];
  __shared__ int high[64];
  int t = threadIdx.x;
  low[t] = in[t] & 15;
  high[t] = in[t] >> 4;
  __syncthreads();
  if (t == 0) out[0] = sum_of(low + 32, 32);
  if (t == 1) out[1] = sum_of(high + 32, 32);
}

int main() {
  int host[64], *d_in, *d_out;
  for (int i = 0; i < 64; i++) host[i] = 3 * i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, 2 * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  upper_half<<<1, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
