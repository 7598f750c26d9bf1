// check: barrier_divergence
// what: the helper with the barriers in it is called by the first warp alone; the other two have gone on

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int sum_by_halves(int* values, int t) {
  for (int half = 16; half > 0; half /= 2) {
    if (t < half) values[t] += values[t + half];
    __syncthreads();  // defect
  }
  return values[0];
}

__global__ void total(const int* in, int* out) {
  __shared__ int sums[32];
  int t = threadIdx.x;
  if (t < 32) sums[t] = in[t] + in[t + 32] + in[t + 64];
  __syncthreads();
  if (t < 32) {
    int sum = sum_by_halves(sums, t);
    if (t == 0) *out = sum;
  }
}

int main() {
  int host[96], *d_in, *d_out;
  for (int i = 0; i < 96; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  total<<<1, 96>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host[0]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
