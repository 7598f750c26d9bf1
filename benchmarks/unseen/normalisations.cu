// Layer, root mean square and group normalisation, some of them the slow way.
// sizes: 16 32768 (rows of 768 floats)
#include "../micro/micro.h"

constexpr int N = 768;

// One thread finds the mean and the variance, the others wait for it.
__global__ void layernorm_one_thread(float* x, float* weight, float* bias, float* y) {
  __shared__ float mean, scale;
  float* in = x + blockIdx.x * N;
  if (threadIdx.x == 0) {
    float sum = 0.0f;
    for (int i = 0; i < N; i++) sum += in[i];
    mean = sum / N;
    float squares = 0.0f;
    for (int i = 0; i < N; i++) squares += (in[i] - mean) * (in[i] - mean);
    scale = 1.0f / sqrtf(squares / N + 1e-5f);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < N; i += blockDim.x)
    y[blockIdx.x * N + i] = (in[i] - mean) * scale * weight[i] + bias[i];
}

// A thread an element of the row, the row in shared memory.
__global__ void layernorm_shared(float* x, float* weight, float* bias, float* y) {
  __shared__ float row[N];
  __shared__ float warp_sums[N / 32], warp_squares[N / 32];
  int i = threadIdx.x;
  row[i] = x[blockIdx.x * N + i];
  __syncthreads();
  float sum = row[i], squares = row[i] * row[i];
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
    squares += __shfl_down_sync(0xffffffff, squares, offset);
  }
  if (i % 32 == 0) {
    warp_sums[i / 32] = sum;
    warp_squares[i / 32] = squares;
  }
  __syncthreads();
  sum = 0.0f;
  squares = 0.0f;
  for (int w = 0; w < N / 32; w++) {
    sum += warp_sums[w];
    squares += warp_squares[w];
  }
  float mean = sum / N;
  float variance = squares / N - mean * mean;
  y[blockIdx.x * N + i] = (row[i] - mean) * rsqrtf(variance + 1e-5f) * weight[i] + bias[i];
}

__global__ void rmsnorm_warp(const float4* __restrict__ x, const float4* __restrict__ weight, float4* __restrict__ y,
                             int rows) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < N / 4; i += 32) {
    float4 v = x[row * (N / 4) + i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  float scale = rsqrtf(sum / N + 1e-6f);
  for (int i = threadIdx.x; i < N / 4; i += 32) {
    float4 v = x[row * (N / 4) + i], w = weight[i];
    y[row * (N / 4) + i] = make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
  }
}

// A group is 8 channels of 12 x 8 pixels: one row here. There are 4 groups in an image.
__global__ void groupnorm(float* x, float* weight, float* bias, float* y) {
  __shared__ float sums[96], squares[96];
  int tid = threadIdx.x, group = blockIdx.x % 4;
  float* in = x + blockIdx.x * N;
  float sum = 0.0f, square = 0.0f;
  for (int c = 0; c < 8; c++) {
    sum += in[c * 96 + tid];
    square += in[c * 96 + tid] * in[c * 96 + tid];
  }
  sums[tid] = sum;
  squares[tid] = square;
  __syncthreads();
  for (int s = 48; s >= 3; s /= 2) {
    if (tid < s) {
      sums[tid] += sums[tid + s];
      squares[tid] += squares[tid + s];
    }
    __syncthreads();
  }
  float mean = (sums[0] + sums[1] + sums[2]) / N;
  float variance = (squares[0] + squares[1] + squares[2]) / N - mean * mean;
  for (int c = 0; c < 8; c++) {
    float v = (in[c * 96 + tid] - mean) / sqrtf(variance + 1e-5f);
    y[blockIdx.x * N + c * 96 + tid] = v * weight[group * 8 + c] + bias[group * 8 + c];
  }
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 16);
  float *x = memory<float>((size_t)rows * N), *y = memory<float>((size_t)rows * N);
  float *weight = memory<float>(N), *bias = memory<float>(N);
  measure("layer norm, one thread", [&] { layernorm_one_thread<<<rows, 128>>>(x, weight, bias, y); });
  measure("layer norm, row in shared", [&] { layernorm_shared<<<rows, N>>>(x, weight, bias, y); });
  measure("rms norm, a warp a row",
          [&] { rmsnorm_warp<<<rows / 8, dim3(32, 8)>>>((float4*)x, (float4*)weight, (float4*)y, rows); });
  measure("group norm", [&] { groupnorm<<<rows, 96>>>(x, weight, bias, y); });
}
