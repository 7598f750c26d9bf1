// check: warp_divergence
// what: threads past the end of the data return before the others shuffle a full warp
// says: has returned

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void count(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = in[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);  // defect
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

int main() {
  int host[100], *in, *out;
  for (int i = 0; i < 100; i++) host[i] = i;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof(int));
  cudaMemset(out, 0, sizeof(int));
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  count<<<2, 64>>>(in, out, 100);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(in);
  cudaFree(out);
}
