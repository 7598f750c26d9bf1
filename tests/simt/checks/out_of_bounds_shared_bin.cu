// check: out_of_bounds
// what: a negative value's bin lies before the shared histogram
// array: bins
// index: -3
// thread: (13,0,0)

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void histogram(const int* in, int n, int* out) {
  __shared__ int bins[16];
  int t = threadIdx.x;
  if (t < 16) bins[t] = 0;
  __syncthreads();
  for (int i = t; i < n; i += blockDim.x) atomicAdd(&bins[in[i] / 10], 1);  // defect
  __syncthreads();
  if (t < 16) out[t] = bins[t];
}

int main() {
  const int n = 150;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i == 77 ? -35 : i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, 16 * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  histogram<<<1, 64>>>(d_in, n, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 16 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int b = 0; b < 16; b++) printf("%d ", host[b]);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
