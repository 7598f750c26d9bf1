// check: race
// what: the first block sets the total to zero and passes a barrier, which the adding threads of other blocks do not
// array: out

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sum_all(const int* in, int* out) {
  if (blockIdx.x == 0 && threadIdx.x < 2) out[threadIdx.x] = 0;  // other
  __syncthreads();
  atomicAdd(&out[threadIdx.x % 2], in[blockIdx.x * blockDim.x + threadIdx.x]);  // defect
}

int main() {
  const int blocks = 4, threads = 32, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, 2 * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  sum_all<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
