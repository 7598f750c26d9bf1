// check: race
// array: places
// what: places are moved without a barrier, some twice, so that the last line writes outside of the output

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void scatter(int* out) {
  __shared__ int places[64];
  int t = threadIdx.x;
  places[t] = 1000;
  __syncthreads();
  places[t] = 1000 + t;  // other
  if (t < 32) places[t + 32] -= 1000;  // defect
  __syncthreads();
  if (t >= 32) out[places[t]] = t;
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 64 * sizeof(int)));
  scatter<<<1, 64>>>(out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(out));
}
