// check: sound
// near: uninitialized
// what: every bit pattern of a half is stored alone, read alone and read in pairs by later kernels

#include <cstdio>
#include <cstdlib>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void store(__half* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = __ushort_as_half((unsigned short)(i * 40503u));
}

__global__ void negate(__half* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = __ushort_as_half(__half_as_ushort(x[i]) ^ 0x8000);
}

__global__ void count_nans(const __half2* x, int* nans, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half2 pair = x[i];
  int found = __hisnan(__low2half(pair)) + __hisnan(__high2half(pair));
  if (found) atomicAdd(nans, found);
}

int main() {
  const int n = 65536;
  __half* x;
  int *nans, host;
  CHECK(cudaMalloc(&x, n * sizeof(__half)));
  CHECK(cudaMalloc(&nans, sizeof(int)));
  CHECK(cudaMemset(nans, 0, sizeof(int)));
  store<<<n / 256, 256>>>(x, n);
  negate<<<n / 256, 256>>>(x, n);
  count_nans<<<n / 512, 256>>>(reinterpret_cast<__half2*>(x), nans, n / 2);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&host, nans, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host);
  CHECK(cudaFree(x));
  CHECK(cudaFree(nans));
}
