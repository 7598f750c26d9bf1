// Prefix sums within blocks: step by step over all elements, up and down a tree, by shuffles, one thread after another.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

__global__ void doubling(float* x, float* y) {
  __shared__ float part[512];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = x[i];
  __syncthreads();
  for (int offset = 1; offset < blockDim.x; offset *= 2) {
    float v = 0.0f;
    if (threadIdx.x >= offset) v = part[threadIdx.x - offset];
    __syncthreads();
    part[threadIdx.x] += v;
    __syncthreads();
  }
  y[i] = part[threadIdx.x];
}

// Two elements a thread; the sum of those before an element.
__global__ void tree(float* x, float* y) {
  __shared__ float part[512];
  int tid = threadIdx.x;
  x += blockIdx.x * 512;
  y += blockIdx.x * 512;
  part[2 * tid] = x[2 * tid];
  part[2 * tid + 1] = x[2 * tid + 1];
  int offset = 1;
  for (int d = 256; d > 0; d >>= 1) {
    __syncthreads();
    if (tid < d) part[offset * (2 * tid + 2) - 1] += part[offset * (2 * tid + 1) - 1];
    offset *= 2;
  }
  __syncthreads();
  if (tid == 0) part[511] = 0.0f;
  for (int d = 1; d < 512; d *= 2) {
    offset >>= 1;
    __syncthreads();
    if (tid < d) {
      int left = offset * (2 * tid + 1) - 1, right = offset * (2 * tid + 2) - 1;
      float v = part[left];
      part[left] = part[right];
      part[right] += v;
    }
  }
  __syncthreads();
  y[2 * tid] = part[2 * tid];
  y[2 * tid + 1] = part[2 * tid + 1];
}

__global__ void shuffles(const int* x, int* y) {
  __shared__ int warps[8];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int v = x[i];
  for (int offset = 1; offset < 32; offset *= 2) {
    int other = __shfl_up_sync(0xffffffff, v, offset);
    if (lane >= offset) v += other;
  }
  if (lane == 31) warps[warp] = v;
  __syncthreads();
  for (int w = 0; w < warp; w++) v += warps[w];
  y[i] = v;
}

// Every thread goes through 32 elements of its own.
__global__ void serial(float* x, float* y) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 32;
  float sum = 0.0f;
  for (int k = 0; k < 32; k++) {
    sum += x[first + k];
    y[first + k] = sum;
  }
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(n), *y = memory<float>(n);
  std::vector<int> ones(1 << 20, 1);
  int* counts = memory<int>(n);
  for (int i = 0; i < n; i += 1 << 20)
    CHECK(cudaMemcpy(counts + i, ones.data(), std::min(n, 1 << 20) * sizeof(int), cudaMemcpyHostToDevice));
  measure("doubling", [&] { doubling<<<n / 512, 512>>>(x, y); });
  measure("tree", [&] { tree<<<n / 512, 256>>>(x, y); });
  measure("shuffles", [&] { shuffles<<<n / 256, 256>>>(counts, (int*)y); });
  measure("32 elements a thread", [&] { serial<<<n / 32 / 128, 128>>>(x, y); });
}
