// The same job in other hands: 32 to 1024 threads a block, 1 to 16 elements a thread, few blocks, much shared memory.
// sizes: 14 24 (log2 of the elements)
#include "../micro/micro.h"

constexpr int STAGE = 10240;

// The job: a polynomial of degree six and a root.
__device__ __forceinline__ float job(float v) {
  float p = 0.0014f;
  p = p * v - 0.0083f;
  p = p * v + 0.0417f;
  p = p * v - 0.1667f;
  p = p * v + 0.5f;
  p = p * v - 1.0f;
  p = p * v + 3.0f;
  return sqrtf(p);
}

// One element a thread, in blocks of the size of a warp and of the largest size.
__global__ void one_element(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = job(x[i]);
}

// Four elements that are next to each other, read one by one.
__global__ void four_in_a_row(const float* x, float* y, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  for (int k = 0; k < 4; k++)
    if (first + k < n) y[first + k] = job(x[first + k]);
}

// Elements a block apart; all are loaded before the first is worked on.
template <int ITEMS>
__global__ void items_a_block_apart(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int first = blockIdx.x * blockDim.x * ITEMS + threadIdx.x;
  float v[ITEMS];
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    const int i = first + k * blockDim.x;
    v[k] = i < n ? x[i] : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < ITEMS; k++) {
    const int i = first + k * blockDim.x;
    if (i < n) y[i] = job(v[k]);
  }
}

// Newton's steps towards a cube root until they are small: threads stop at different times.
__global__ void newton_until_close(const float* x, float* y, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  for (int k = 0; k < 2; k++) {
    if (i + k >= n) return;
    float a = fabsf(x[i + k]) + 0.001f, r = 1.0f;
    for (int step = 0; step < 50; step++) {
      float next = (2.0f * r + a / (r * r)) / 3.0f;
      bool close = fabsf(next - r) < 1e-5f;
      r = next;
      if (close) break;
    }
    y[i + k] = r;
  }
}

// Fewer blocks than the machine has room for; each thread takes many elements.
__global__ void few_small_blocks(const float* x, float* y, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = job(x[i]);
}

// 40 KiB of shared memory a block: elements come in, and leave in reversed order.
__global__ void large_stage(const float* x, float* y, int n) {
  __shared__ float stage[STAGE];
  int first = blockIdx.x * STAGE, count = min(STAGE, n - first);
  for (int i = threadIdx.x; i < count; i += blockDim.x) stage[i] = x[first + i];
  __syncthreads();
  for (int i = threadIdx.x; i < count; i += blockDim.x) y[first + i] = job(stage[count - 1 - i]);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(n), *y = memory<float>(n);
  std::vector<float> values(n);
  unsigned state = 49;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("32 threads, one element", [&] { one_element<<<(n + 31) / 32, 32>>>(x, y, n); });
  measure("1024 threads, one element", [&] { one_element<<<(n + 1023) / 1024, 1024>>>(x, y, n); });
  measure("256 threads, four in a row", [&] { four_in_a_row<<<(n / 4 + 255) / 256, 256>>>(x, y, n); });
  measure("64 threads, eight elements", [&] { items_a_block_apart<8><<<(n + 511) / 512, 64>>>(x, y, n); });
  measure("1024 threads, sixteen elements", [&] { items_a_block_apart<16><<<(n + 16383) / 16384, 1024>>>(x, y, n); });
  measure("two elements, steps until close", [&] { newton_until_close<<<(n / 2 + 127) / 128, 128>>>(x, y, n); });
  measure("132 blocks of 64 threads", [&] { few_small_blocks<<<132, 64>>>(x, y, n); });
  measure("40 KiB a block", [&] { large_stage<<<(n + STAGE - 1) / STAGE, 256>>>(x, y, n); });
}
