// check: out_of_bounds
// index: 8
// what: a loop writes one element too many to an array from malloc in the kernel

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fill(int* out) {
  int* all = (int*)malloc(8 * sizeof(int));
  for (int i = 0; i <= 8; ++i) all[i] = i;  // defect
  out[threadIdx.x] = all[3];
  free(all);
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 32 * sizeof(int)));
  fill<<<1, 32>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(out));
}
