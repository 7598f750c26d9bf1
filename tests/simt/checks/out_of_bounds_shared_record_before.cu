// check: out_of_bounds
// what: an index that runs down passes zero, and the loop writes records in front of the shared array
// array: queue

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Job { int id; float cost; double weight; };

__global__ void plan(double* out, int jobs) {
  __shared__ int first[8];
  __shared__ Job queue[32];
  first[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    Job* slot = queue + 32;
    for (int j = 0; j < jobs; j++) *--slot = Job{j, 0.5f, 1.0};  // defect
  }
  __syncthreads();
  out[threadIdx.x] = queue[threadIdx.x].weight + first[threadIdx.x];
}

int main() {
  double* out;
  CHECK(cudaMalloc(&out, 8 * sizeof(double)));
  plan<<<1, 8>>>(out, 2000);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(out);
}
