// check: sound
// near: uninitialized
// what: blocks mark bytes of a word of global memory, and the last block to finish reads all of them

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void mark(unsigned char* marks, unsigned* finished, int* sum) {
  __shared__ bool last;
  if (threadIdx.x < 3) marks[3 * blockIdx.x + threadIdx.x] = 0x7f + 71 * threadIdx.x;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(finished, 1) == gridDim.x - 1;
  __syncthreads();
  if (!last) return;
  int mine = 0;
  for (int i = threadIdx.x; i < 3 * gridDim.x; i += blockDim.x) mine += ((volatile unsigned char*)marks)[i];
  atomicAdd(sum, mine);
}

int main() {
  const int blocks = 24;
  unsigned char* marks;
  unsigned* finished;
  int *sum, host;
  CHECK(cudaMalloc(&marks, 3 * blocks));
  CHECK(cudaMalloc(&finished, sizeof(unsigned)));
  CHECK(cudaMalloc(&sum, sizeof(int)));
  CHECK(cudaMemset(finished, 0, sizeof(unsigned)));
  CHECK(cudaMemset(sum, 0, sizeof(int)));
  mark<<<blocks, 32>>>(marks, finished, sum);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&host, sum, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host);
  CHECK(cudaFree(marks));
  CHECK(cudaFree(finished));
  CHECK(cudaFree(sum));
}
