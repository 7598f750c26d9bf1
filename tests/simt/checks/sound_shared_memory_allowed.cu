// check: sound
// near: unchecked_error
// what: 64 KiB of dynamic shared memory, allowed by cudaFuncSetAttribute before the launch

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void rotate(int* x, int n, int by) {
  extern __shared__ int copy[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) copy[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = copy[(i + by) % n];
}

int main() {
  const int n = 16384, bytes = n * sizeof(int);
  static int host[n];
  int* d_x;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_x, bytes));
  CHECK(cudaMemcpy(d_x, host, bytes, cudaMemcpyHostToDevice));
  CHECK(cudaFuncSetAttribute(rotate, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  rotate<<<1, 64, bytes>>>(d_x, n, 5);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host, d_x, bytes, cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_x));
  return 0;
}
