// check: uninitialized
// index: 5
// what: an element of an array from new in the kernel is read that no loop has written

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fill(int* out) {
  int* all = new int[6];
  for (int i = 0; i < 5; ++i) all[i] = i;
  out[threadIdx.x] = all[5 - threadIdx.x % 2];  // defect
  delete[] all;
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 32 * sizeof(int)));
  fill<<<1, 32>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(out));
}
