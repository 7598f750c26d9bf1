// check: sound
// near: uninitialized
// what: each element is mapped through a table of device functions

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

typedef float (*Activation)(float);
__device__ float relu(float x) { return x > 0 ? x : 0.0f; }
__device__ float square(float x) { return x * x; }
__device__ float identity(float x) { return x; }
__device__ Activation table[3] = {relu, square, identity};

__global__ void activate(const float* in, const int* which, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = table[which[i]](in[i]);
}

int main() {
  const int n = 60;
  float host[n], *d_in, *d_out;
  int which[n], *d_which;
  for (int i = 0; i < n; i++) host[i] = i - 30, which[i] = i % 3;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMalloc(&d_which, sizeof(which)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_which, which, sizeof(which), cudaMemcpyHostToDevice));
  activate<<<2, 32>>>(d_in, d_which, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%g %g %g\n", host[0], host[1], host[2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  CHECK(cudaFree(d_which));
  return 0;
}
