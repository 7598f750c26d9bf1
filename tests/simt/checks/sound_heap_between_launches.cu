// check: sound
// near: uninitialized
// what: a kernel allocates an array that later kernels fill, read and free

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ float* kept;

__global__ void make() { kept = new float[64]; }
__global__ void fill() { kept[threadIdx.x] = threadIdx.x; }
__global__ void reverse(float* out) { out[threadIdx.x] = kept[63 - threadIdx.x]; }
__global__ void destroy() { delete[] kept; }

int main() {
  float host[64], *out;
  CHECK(cudaMalloc(&out, sizeof host));
  make<<<1, 1>>>();
  fill<<<1, 64>>>();
  reverse<<<1, 64>>>(out);
  destroy<<<1, 1>>>();
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%g\n", host[0]);
  CHECK(cudaFree(out));
}
