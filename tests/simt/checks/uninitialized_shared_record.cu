// check: uninitialized
// what: a shared record with the block's parameters is read by all threads, and no thread ever fills it
// array: job

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Job { int first; int count; };

__device__ int start_of(const Job& job) { return job.first; }  // defect

__global__ void run(int* out) {
  __shared__ Job job;
  __syncthreads();
  int first = start_of(job);
  out[blockIdx.x * blockDim.x + threadIdx.x] = first > 3 ? 1 : 0;
}

int main() {
  int* out;
  CHECK(cudaMalloc(&out, 128 * sizeof(int)));
  run<<<2, 64>>>(out);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(out));
}
