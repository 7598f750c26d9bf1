// Sums down the columns of a matrix, running sums, and the statistics of batch normalisation.
// sizes: 64 8192 (rows of 4096 floats)
#include "../micro/micro.h"

constexpr int COLUMNS = 4096, CHANNELS = 64, PIXELS = 1024;

__global__ void sum_thread(float* x, float* y, int rows) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int r = 0; r < rows; r++) sum += x[r * COLUMNS + c];
  y[c] = sum;
}

// A block goes down 32 columns of 64 rows: 8 threads a column, whose sums meet in shared memory.
__global__ void sum_block(float* x, float* y) {
  __shared__ float part[8][32];
  int c = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int r = threadIdx.y; r < 64; r += 8) sum += x[(blockIdx.y * 64 + r) * COLUMNS + c];
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int j = 1; j < 8; j++) sum += part[j][threadIdx.x];
    atomicAdd(&y[c], sum);
  }
}

__global__ void sum_atomics(float* x, float* y, int rows) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * COLUMNS) atomicAdd(&y[i % COLUMNS], x[i]);
}

__global__ void running_sum(float* x, float* y, int rows) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (int r = 0; r < rows; r++) {
    sum += x[r * COLUMNS + c];
    y[r * COLUMNS + c] = sum;
  }
}

// A block a channel, over all images and pixels.
__global__ void batchnorm_statistics(float* x, float* mean, float* variance, int images) {
  __shared__ float s1[512], s2[512];
  int c = blockIdx.x, tid = threadIdx.x;
  float sum = 0.0f, squares = 0.0f;
  for (int i = tid; i < images * PIXELS; i += blockDim.x) {
    int n = i / PIXELS, pixel = i % PIXELS;
    float v = x[(n * CHANNELS + c) * PIXELS + pixel];
    sum += v;
    squares += v * v;
  }
  s1[tid] = sum;
  s2[tid] = squares;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) {
      s1[tid] += s1[tid + s];
      s2[tid] += s2[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) {
    float count = (float)images * PIXELS;
    mean[c] = s1[0] / count;
    variance[c] = s2[0] / count - mean[c] * mean[c];
  }
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), n = rows * COLUMNS;
  float *x = memory<float>(n), *y = memory<float>(n), *z = memory<float>(CHANNELS);
  measure("sum, a thread a column", [&] { sum_thread<<<COLUMNS / 256, 256>>>(x, y, rows); });
  measure("sum, blocks", [&] { sum_block<<<dim3(COLUMNS / 32, rows / 64), dim3(32, 8)>>>(x, y); });
  measure("sum, atomics", [&] { sum_atomics<<<n / 256, 256>>>(x, y, rows); });
  measure("running sum", [&] { running_sum<<<COLUMNS / 64, 64>>>(x, y, rows); });
  measure("batch norm statistics", [&] { batchnorm_statistics<<<CHANNELS, 512>>>(x, y, z, rows / 16); });
}
