// check: sound
// near: illegal_address
// what: a kernel takes large structs by value and indexes the arrays in them, and passes their addresses on

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Filter {
  float taps[9];
  int offset[9];
};
struct Options { double scale; int size; char name[20]; };

__device__ float apply(const Filter* filter, const float* x, int i, int n) {
  float sum = 0;
  for (int k = 0; k < 9; k++) sum += filter->taps[k] * x[(i + filter->offset[k] + n) % n];
  return sum;
}

__global__ void convolve(Filter filter, const float* x, float* y, Options options) {
  int i = threadIdx.x;
  if (i < options.size) y[i] = options.scale * apply(&filter, x, i, options.size) + (options.name[i % 20] == 'x');
}

int main() {
  Filter filter;
  Options options{0.5, 60, "smooth"};
  for (int k = 0; k < 9; k++) filter.taps[k] = 1.f / 9, filter.offset[k] = k - 4;
  float host[60], *x, *y;
  for (int i = 0; i < 60; i++) host[i] = i;
  CHECK(cudaMalloc(&x, sizeof host));
  CHECK(cudaMalloc(&y, sizeof host));
  CHECK(cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice));
  convolve<<<1, 64>>>(filter, x, y, options);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, y, sizeof host, cudaMemcpyDeviceToHost));
  printf("%f\n", host[30]);
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}
