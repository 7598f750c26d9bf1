// check: illegal_address
// what: a buffer that was freed after the first pass is written in the second

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Workspace {
  double* partial;
  int count;
};

__global__ void halve(Workspace work) {
  int i = threadIdx.x;
  if (i < work.count) work.partial[i] = i / 2.0;  // defect
}

int main() {
  Workspace work{nullptr, 64};
  CHECK(cudaMalloc(&work.partial, 64 * sizeof(double)));
  halve<<<1, 64>>>(work);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(work.partial));
  halve<<<1, 64>>>(work);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
