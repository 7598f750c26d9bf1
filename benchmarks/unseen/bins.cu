// Counting and adding into random places: few bins, many bins, rows of a graph; in global and in shared memory.
// sizes: 12 22 (log2 of the elements)
#include "../micro/micro.h"

constexpr int CLASSES = 10, BINS = 1000, FEATURES = 32;

__global__ void classes_global(int* x, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&counts[x[i] % CLASSES], 1);
}

__global__ void classes_shared(int* x, int* counts, int n) {
  __shared__ int mine[CLASSES];
  if (threadIdx.x < CLASSES) mine[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&mine[x[i] % CLASSES], 1);
  __syncthreads();
  if (threadIdx.x < CLASSES) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

// Each bin adds the weights of what falls into it.
__global__ void weights_shared(const int* x, const float* weight, float* sums, int n) {
  __shared__ float mine[BINS];
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) mine[b] = 0.0f;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&mine[x[i] % BINS], weight[i]);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) atomicAdd(&sums[b], mine[b]);
}

__global__ void scatter_add(float* x, int* at, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&y[at[i]], x[i]);
}

// An edge of a graph adds the features of one node to those of another: a warp an edge.
__global__ void edges(int* from, int* to, float* x, float* y, int count) {
  int e = (blockIdx.x * blockDim.x + threadIdx.x) / FEATURES;
  int f = threadIdx.x % FEATURES;
  if (e < count) atomicAdd(&y[to[e] * FEATURES + f], x[from[e] * FEATURES + f]);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12), nodes = n / 8, count = n / 4;
  std::vector<int> host(n);
  unsigned state = 2024;
  for (int& v : host) {
    state = state * 1664525u + 1013904223u;
    v = (state >> 8) % nodes;
  }
  int *at = memory<int>(n), *counts = memory<int>(CLASSES);
  CHECK(cudaMemcpy(at, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  float *weight = memory<float>(n), *sums = memory<float>(BINS), *y = memory<float>(nodes);
  float *before = memory<float>((size_t)nodes * FEATURES), *after = memory<float>((size_t)nodes * FEATURES);
  measure("10 classes, global", [&] { classes_global<<<n / 256, 256>>>(at, counts, n); });
  measure("10 classes, shared", [&] { classes_shared<<<n / 512, 512>>>(at, counts, n); });
  measure("1000 bins of weights, shared", [&] { weights_shared<<<264, 384>>>(at, weight, sums, n); });
  measure("scatter add", [&] { scatter_add<<<n / 128, 128>>>(weight, at, y, n); });
  measure("edges of a graph", [&] { edges<<<count / 8, 256>>>(at, at + count, before, after, count); });
}
