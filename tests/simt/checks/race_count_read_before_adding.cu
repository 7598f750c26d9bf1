// check: race
// what: thread 0 notes the old count with a plain read before its atomicAdd; no barrier holds the others back
// array: count

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_odd(const int* in, int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 100;
  __syncthreads();
  int before = 0;
  if (threadIdx.x == 0) before = count;  // other
  atomicAdd(&count, in[blockIdx.x * blockDim.x + threadIdx.x] & 1);  // defect
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count - before;
}

int main() {
  const int blocks = 3, threads = 64, n = blocks * threads;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 7;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  count_odd<<<blocks, threads>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, blocks * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
