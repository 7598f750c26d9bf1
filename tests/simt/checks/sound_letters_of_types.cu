// check: sound
// near: out_of_bounds
// what: kernels and arrays have the letters that stand for built-in types, and every index is in range

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__constant__ float w[3] = {0.25f, 0.5f, 0.25f};
__device__ int l[64];

struct z { float a, b; };

__global__ void i(int n) {
  int x = threadIdx.x;
  if (x < n) l[x] = 3 * x;
}

__global__ void d(const float* f, z* t) {
  __shared__ float s[66], b[64];
  int j = threadIdx.x;
  s[j + 1] = f[j];
  if (j < 2) s[j * 65] = 0;
  __syncthreads();
  b[63 - j] = w[0] * s[j] + w[1] * s[j + 1] + w[2] * s[j + 2];
  __syncthreads();
  t[j] = {b[j], float(l[j])};
}

int main() {
  float host[64], *f;
  z result[64], *t;
  for (int k = 0; k < 64; k++) host[k] = k;
  CHECK(cudaMalloc(&f, sizeof host));
  CHECK(cudaMalloc(&t, sizeof result));
  CHECK(cudaMemcpy(f, host, sizeof host, cudaMemcpyHostToDevice));
  i<<<1, 64>>>(64);
  d<<<1, 64>>>(f, t);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result, t, sizeof result, cudaMemcpyDeviceToHost));
  printf("%g %g\n", result[5].a, result[5].b);
  CHECK(cudaFree(f));
  CHECK(cudaFree(t));
}
