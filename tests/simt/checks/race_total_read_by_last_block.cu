// check: race
// what: the last block takes the total for complete after a barrier, which waits for its own threads alone
// array: out

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sum_and_double(const int* in, int* out) {
  atomicAdd(&out[0], in[blockIdx.x * blockDim.x + threadIdx.x]);  // other
  __syncthreads();
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) out[1] = 2 * out[0];  // defect
}

int main() {
  const int blocks = 4, threads = 32, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, 2 * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, 2 * sizeof(int)));
  sum_and_double<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
