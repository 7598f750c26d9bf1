// Softmax and layer normalisation of rows, as they are often written: a block a row, a warp a row, a thread a row.
// sizes: 16 65536 (rows of 1024 floats)
#include "micro.h"

constexpr int N = 1024, THREADS = 256;

__device__ float block_sum(float v) {
  __shared__ float part[THREADS / 32];
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  float sum = 0.0f;
  for (int w = 0; w < THREADS / 32; w++) sum += part[w];
  return sum;
}

__global__ void softmax_block(const float* x, float* y) {
  x += blockIdx.x * (size_t)N, y += blockIdx.x * (size_t)N;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < N; i += THREADS) sum += expf(x[i]);
  sum = block_sum(sum);
  for (int i = threadIdx.x; i < N; i += THREADS) y[i] = expf(x[i]) / sum;
}

__global__ void softmax_warp(const float* x, float* y) {
  const size_t row = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  float sum = 0.0f;
  for (int i = lane; i < N; i += 32) sum += expf(x[row * N + i]);
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  for (int i = lane; i < N; i += 32) y[row * N + i] = expf(x[row * N + i]) / sum;
}

__global__ void softmax_thread(const float* x, float* y, int rows) {
  const size_t row = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < N; i++) sum += expf(x[row * N + i]);
  for (int i = 0; i < N; i++) y[row * N + i] = expf(x[row * N + i]) / sum;
}

__global__ void layernorm(const float* x, const float* weight, const float* bias, float* y) {
  x += blockIdx.x * (size_t)N, y += blockIdx.x * (size_t)N;
  float v[N / THREADS], sum = 0.0f, squares = 0.0f;
  for (int k = 0; k < N / THREADS; k++) sum += v[k] = x[k * THREADS + threadIdx.x];
  const float mean = block_sum(sum) / N;
  for (int k = 0; k < N / THREADS; k++) squares += (v[k] - mean) * (v[k] - mean);
  const float scale = rsqrtf(block_sum(squares) / N + 1e-5f);
  for (int k = 0; k < N / THREADS; k++) {
    const int i = k * THREADS + threadIdx.x;
    y[i] = (v[k] - mean) * scale * weight[i] + bias[i];
  }
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 16);
  float *x = memory<float>((size_t)rows * N), *y = memory<float>((size_t)rows * N), *w = memory<float>(N);
  measure("softmax, a block a row", [&] { softmax_block<<<rows, THREADS>>>(x, y); });
  measure("softmax, a warp a row", [&] { softmax_warp<<<rows / 8, THREADS>>>(x, y); });
  measure("softmax, a thread a row", [&] { softmax_thread<<<(rows + 63) / 64, 64>>>(x, y, rows); });
  measure("layer normalisation", [&] { layernorm<<<rows, THREADS>>>(x, w, w, y); });
}
