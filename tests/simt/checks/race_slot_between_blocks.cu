// check: race
// array: next_slot
// what: blocks take a slot without an atomic operation; where the slots run out, a block writes outside of the output

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int next_slot = 0;

__global__ void append(int* out) {
  int slot = next_slot;  // defect
  next_slot = slot + 8;  // other
  out[slot] = blockIdx.x;
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 64 * sizeof(int)));
  append<<<32, 1>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(out));
}
