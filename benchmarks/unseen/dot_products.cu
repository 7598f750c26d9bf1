// Dot products and the distance of two long vectors: with an atomic a thread, an atomic a block, and in doubles.
// sizes: 16 24 (log2 of the elements)
#include "../micro/micro.h"

__global__ void dot_thread_atomics(float* a, float* b, float* result, int n) {
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  atomicAdd(result, sum);
}

__global__ void dot_block_tree(float* a, float* b, float* result, int n) {
  __shared__ float cache[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cache[threadIdx.x] = i < n ? a[i] * b[i] : 0.0f;
  __syncthreads();
  int s = blockDim.x / 2;
  while (s != 0) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
    s /= 2;
  }
  if (threadIdx.x == 0) atomicAdd(result, cache[0]);
}

__global__ void dot_shuffles(const float* __restrict__ a, const float* __restrict__ b, float* result, int n) {
  __shared__ float warps[32];
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i] * b[i];
  for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warps[threadIdx.x];
    for (int offset = 16; offset > 0; offset >>= 1) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x == 0) atomicAdd(result, sum);
  }
}

// Floats in memory, doubles from there on.
__global__ void distance_doubles(float* a, float* b, double* result, int n) {
  __shared__ double cache[128];
  double sum = 0.0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    double d = (double)a[i] - (double)b[i];
    sum += d * d;
  }
  cache[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 64; s > 0; s /= 2) {
    if (threadIdx.x < s) cache[threadIdx.x] += cache[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(result, cache[0]);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 16);
  float *a = memory<float>(n), *b = memory<float>(n), *result = memory<float>(1);
  double* distance = memory<double>(1);
  measure("an atomic a thread", [&] { dot_thread_atomics<<<1056, 128>>>(a, b, result, n); });
  measure("an atomic a block", [&] { dot_block_tree<<<n / 256, 256>>>(a, b, result, n); });
  measure("shuffles", [&] { dot_shuffles<<<264, 1024>>>(a, b, result, n); });
  measure("distance in double", [&] { distance_doubles<<<1024, 128>>>(a, b, distance, n); });
}
