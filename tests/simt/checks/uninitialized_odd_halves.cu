// check: uninitialized
// what: a kernel writes the even halves of an array, and the next one reads the array as half2
// severity: warning
// array: pairs

#include <cstdio>
#include <cstdlib>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fill_even(__half* x, int n) {
  int i = threadIdx.x;
  if (2 * i < n) x[2 * i] = __float2half(i);
}

__global__ void add(const __half2* pairs, float* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  __half2 p = pairs[i];  // defect
  out[i] = __half2float(__low2half(p)) + __half2float(__high2half(p));
}

int main() {
  const int n = 64;
  __half* x;
  float* out;
  CHECK(cudaMalloc(&x, n * sizeof(__half)));
  CHECK(cudaMalloc(&out, n / 2 * sizeof(float)));
  fill_even<<<1, 32>>>(x, n);
  add<<<1, 32>>>(reinterpret_cast<__half2*>(x), out, n / 2);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(x));
  CHECK(cudaFree(out));
}
