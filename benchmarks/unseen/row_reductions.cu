// Sums, largest elements and variances of rows: a thread, a warp or a block a row, some of them the slow way.
// sizes: 64 16384 (rows of 2000 floats)
#include "../micro/micro.h"

constexpr int N = 2000;

__global__ void sum_thread(float* x, float* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < rows) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++) sum += x[row * N + i];
    y[row] = sum;
  }
}

// The first reduction that one writes: the threads that still add are ever further apart.
__global__ void sum_interleaved(float* x, float* y) {
  __shared__ float part[256];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < N; i += blockDim.x) sum += x[blockIdx.x * N + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int stride = 1; stride < blockDim.x; stride *= 2) {
    if (threadIdx.x % (2 * stride) == 0) part[threadIdx.x] += part[threadIdx.x + stride];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

__global__ void argmax_warp(const float* x, int* y, int rows) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float best = -INFINITY;
  int at = 0;
  for (int i = lane; i < N; i += 32) {
    float v = x[row * N + i];
    if (v > best) {
      best = v;
      at = i;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    float other = __shfl_down_sync(0xffffffff, best, offset);
    int other_at = __shfl_down_sync(0xffffffff, at, offset);
    if (other > best || (other == best && other_at < at)) {
      best = other;
      at = other_at;
    }
  }
  if (lane == 0) y[row] = at;
}

__global__ void mean_variance(float* x, float* mean, float* variance) {
  __shared__ float sums[128], squares[128];
  int tid = threadIdx.x;
  sums[tid] = 0.0f;
  squares[tid] = 0.0f;
  for (int i = tid; i < N; i += 128) {
    sums[tid] += x[blockIdx.x * N + i];
    squares[tid] += x[blockIdx.x * N + i] * x[blockIdx.x * N + i];
  }
  __syncthreads();
  for (int stride = 64; stride > 0; stride /= 2) {
    if (tid < stride) {
      sums[tid] += sums[tid + stride];
      squares[tid] += squares[tid + stride];
    }
    __syncthreads();
  }
  if (tid == 0) {
    float m = sums[0] / N;
    mean[blockIdx.x] = m;
    variance[blockIdx.x] = squares[0] / N - m * m;
  }
}

// All threads of a block add to one number in shared memory.
__global__ void norm_shared_atomics(float* x, float* y) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += blockDim.x) {
    float v = x[blockIdx.x * N + i];
    atomicAdd(&sum, v * v);
  }
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = sqrtf(sum);
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64);
  float *x = memory<float>((size_t)rows * N), *y = memory<float>(rows), *z = memory<float>(rows);
  int* at = memory<int>(rows);
  measure("sum, a thread a row", [&] { sum_thread<<<rows / 64, 64>>>(x, y, rows); });
  measure("sum, interleaved", [&] { sum_interleaved<<<rows, 256>>>(x, y); });
  measure("argmax, a warp a row", [&] { argmax_warp<<<rows / 4, 128>>>(x, at, rows); });
  measure("mean and variance", [&] { mean_variance<<<rows, 128>>>(x, y, z); });
  measure("norm, shared atomics", [&] { norm_shared_atomics<<<rows, 96>>>(x, y); });
}
