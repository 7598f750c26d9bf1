// A histogram of bytes: atomics on global memory, and on shared memory with one atomic a bin and block at the end.
// sizes: 14 24 (log2 of the bytes)
#include "micro.h"

constexpr int BINS = 256, A_THREAD = 16;

__global__ void fill(unsigned char* x) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned hash = i * 2654435761u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  x[i] = (hash ^ hash >> 13) * 3266489917u >> 24;
}

__global__ void global_bins(const unsigned char* x, int* bins, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[x[i]], 1);
}

__global__ void shared_bins(const unsigned char* x, int* bins, int n) {
  __shared__ int mine[BINS];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[x[i]], 1);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  unsigned char* x = memory<unsigned char>(n);
  int* bins = memory<int>(BINS);
  measure("fill", [&] { fill<<<n / BINS, BINS>>>(x); });
  measure("global bins", [&] { global_bins<<<n / BINS / A_THREAD, BINS>>>(x, bins, n); });
  measure("shared bins", [&] { shared_bins<<<n / BINS / A_THREAD, BINS>>>(x, bins, n); });
}
