// check: race
// array: offsets
// what: offsets are read without a barrier after they were written; what was there before overflows in the next line

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void spread(int* out) {
  __shared__ int offsets[64];
  int t = threadIdx.x;
  offsets[t] = t;  // other
  int next = offsets[(t + 1) % 64];  // defect
  out[t] = next * 64;
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 64 * sizeof(int)));
  spread<<<1, 64>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(out));
}
