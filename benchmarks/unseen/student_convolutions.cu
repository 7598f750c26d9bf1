// Convolutions of 32 channels into 64 as students write them: naive, padded, strided, with tiles, as a product, 1 x 1.
// sizes: 1 16 (images of 56 x 56 pixels)
#include "../micro/micro.h"

constexpr int IN = 32, FILTERS = 64, SIDE = 56, PIXELS = SIDE * SIDE, DEPTH = IN * 9;

// No padding: a thread an element of the result, whose place follows from one index.
__global__ void conv_naive(float* input, float* weight, float* bias, float* output, int N, int C, int H, int W, int K,
                           int R, int S) {
  int outH = H - R + 1, outW = W - S + 1;
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * K * outH * outW) return;
  int w = idx % outW, h = (idx / outW) % outH, k = (idx / (outW * outH)) % K, n = idx / (outW * outH * K);
  float sum = bias[k];
  for (int c = 0; c < C; c++)
    for (int r = 0; r < R; r++)
      for (int s = 0; s < S; s++)
        sum += input[((n * C + c) * H + h + r) * W + w + s] * weight[((k * C + c) * R + r) * S + s];
  output[idx] = sum;
}

// A border of zeros; a grid of three dimensions.
__global__ void conv_padded(const float* __restrict__ input, const float* __restrict__ weight,
                            float* __restrict__ output, int C, int H, int W, int K) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z % K, n = blockIdx.z / K;
  if (x >= W || y >= H) return;
  float sum = 0.0f;
  for (int c = 0; c < C; c++) {
    for (int i = 0; i < 3; i++) {
      for (int j = 0; j < 3; j++) {
        int iy = y + i - 1, ix = x + j - 1;
        if (iy >= 0 && iy < H && ix >= 0 && ix < W)
          sum += input[((n * C + c) * H + iy) * W + ix] * weight[((k * C + c) * 3 + i) * 3 + j];
      }
    }
  }
  output[((n * K + k) * H + y) * W + x] = sum;
}

// Any stride, padding and size of the filter; a ReLU at the end.
__global__ void conv_strided(const float* input, const float* weight, const float* bias, float* output, int N, int C,
                             int H, int W, int K, int kernel, int stride, int padding) {
  int outH = (H + 2 * padding - kernel) / stride + 1, outW = (W + 2 * padding - kernel) / stride + 1;
  int total = N * K * outH * outW;
  for (int idx = blockIdx.x * blockDim.x + threadIdx.x; idx < total; idx += gridDim.x * blockDim.x) {
    int ow = idx % outW;
    int oh = idx / outW % outH;
    int k = idx / outW / outH % K;
    int n = idx / outW / outH / K;
    float value = bias ? bias[k] : 0.0f;
    for (int c = 0; c < C; ++c)
      for (int kh = 0; kh < kernel; ++kh) {
        int ih = oh * stride - padding + kh;
        if (ih < 0 || ih >= H) continue;
        for (int kw = 0; kw < kernel; ++kw) {
          int iw = ow * stride - padding + kw;
          if (iw < 0 || iw >= W) continue;
          value += input[((n * C + c) * H + ih) * W + iw] * weight[((k * C + c) * kernel + kh) * kernel + kw];
        }
      }
    output[idx] = value > 0.0f ? value : 0.0f;
  }
}

// A block has one channel of one image's result; its weights are in shared memory.
__global__ void conv_channel_block(const float* input, const float* weight, const float* bias, float* output) {
  __shared__ float w[DEPTH];
  const int k = blockIdx.x, n = blockIdx.y;
  for (int i = threadIdx.x; i < DEPTH; i += blockDim.x) w[i] = weight[k * DEPTH + i];
  __syncthreads();
  const int out = SIDE - 2;
  for (int p = threadIdx.x; p < out * out; p += blockDim.x) {
    int y = p / out, x = p % out;
    float sum = bias[k];
    for (int c = 0; c < IN; c++)
      for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) sum += input[(n * IN + c) * PIXELS + (y + i) * SIDE + x + j] * w[c * 9 + i * 3 + j];
    output[((n * FILTERS + k) * out + y) * out + x] = sum;
  }
}

// A tile of each channel with its border in shared memory, one channel after the other.
__global__ void conv_input_tile(const float* input, const float* weight, float* output) {
  __shared__ float tile[10][18];
  int tx = threadIdx.x, ty = threadIdx.y;
  int x0 = blockIdx.x * 16, y0 = blockIdx.y * 8;
  int k = blockIdx.z % FILTERS, n = blockIdx.z / FILTERS;
  float sum = 0.0f;
  for (int c = 0; c < IN; c++) {
    for (int i = ty * 16 + tx; i < 10 * 18; i += 128) {
      int y = y0 + i / 18 - 1, x = x0 + i % 18 - 1;
      bool inside = y >= 0 && y < SIDE && x >= 0 && x < SIDE;
      tile[i / 18][i % 18] = inside ? input[(n * IN + c) * PIXELS + y * SIDE + x] : 0.0f;
    }
    __syncthreads();
    const float* w = weight + (k * IN + c) * 9;
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) sum += tile[ty + i][tx + j] * w[i * 3 + j];
    __syncthreads();
  }
  if (x0 + tx < SIDE && y0 + ty < SIDE) output[(n * FILTERS + k) * PIXELS + (y0 + ty) * SIDE + x0 + tx] = sum;
}

// The columns for the product: a block has a piece of one row of the matrix, so that its channel is the same.
__global__ void im2col_rows(const float* input, float* columns) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y, n = blockIdx.z;
  if (p >= PIXELS) return;
  int c = row / 9, i = row % 9 / 3 - 1, j = row % 3 - 1;
  int y = p / SIDE + i, x = p % SIDE + j;
  float v = 0.0f;
  if (y >= 0 && y < SIDE && x >= 0 && x < SIDE) v = input[(n * IN + c) * PIXELS + y * SIDE + x];
  columns[(n * DEPTH + row) * PIXELS + p] = v;
}

// The product of the weights with each image's columns, in tiles of 16, and the bias.
__global__ void conv_matmul(const float* weight, const float* columns, const float* bias, float* output) {
  __shared__ float a[16][16], b[16][16];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int p = blockIdx.x * 16 + tx, k = blockIdx.y * 16 + ty, n = blockIdx.z;
  float sum = 0.0f;
  for (int d = 0; d < DEPTH; d += 16) {
    a[ty][tx] = weight[k * DEPTH + d + tx];
    b[ty][tx] = columns[(n * DEPTH + d + ty) * PIXELS + p];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) sum += a[ty][i] * b[i][tx];
    __syncthreads();
  }
  output[(n * FILTERS + k) * PIXELS + p] = sum + bias[k];
}

// 1 x 1: all weights in shared memory; a thread has 16 channels of a pixel's result.
__global__ void conv_1x1_shared(const float* __restrict__ input, const float* __restrict__ weight,
                                float* __restrict__ output) {
  __shared__ float w[16][IN];
  const int p = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * 16, n = blockIdx.z;
  for (int i = threadIdx.x; i < 16 * IN; i += blockDim.x) w[i / IN][i % IN] = weight[first * IN + i];
  __syncthreads();
  if (p >= PIXELS) return;
  float sum[16] = {};
  for (int c = 0; c < IN; c++) {
    const float v = input[(n * IN + c) * PIXELS + p];
#pragma unroll
    for (int k = 0; k < 16; k++) sum[k] += v * w[k][c];
  }
#pragma unroll
  for (int k = 0; k < 16; k++) output[(n * FILTERS + first + k) * PIXELS + p] = sum[k];
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), n = images * IN * PIXELS;
  float *x = memory<float>(n), *y = memory<float>(images * FILTERS * PIXELS);
  float *weight = memory<float>(FILTERS * DEPTH), *bias = memory<float>(FILTERS);
  float* columns = memory<float>((size_t)images * DEPTH * PIXELS);
  std::vector<float> values(n);
  unsigned state = 25;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(weight, values.data(), FILTERS * DEPTH * sizeof(float), cudaMemcpyHostToDevice));
  const int valid = images * FILTERS * (SIDE - 2) * (SIDE - 2);
  measure("naive",
          [&] { conv_naive<<<(valid + 255) / 256, 256>>>(x, weight, bias, y, images, IN, SIDE, SIDE, FILTERS, 3, 3); });
  measure("padded, grid of planes",
          [&] { conv_padded<<<dim3(4, 4, images * FILTERS), dim3(16, 16)>>>(x, weight, y, IN, SIDE, SIDE, FILTERS); });
  measure("stride 2",
          [&] { conv_strided<<<264, 256>>>(x, weight, bias, y, images, IN, SIDE, SIDE, FILTERS, 3, 2, 1); });
  measure("a channel a block", [&] { conv_channel_block<<<dim3(FILTERS, images), 256>>>(x, weight, bias, y); });
  measure("tile of the input", [&] { conv_input_tile<<<dim3(4, 7, images * FILTERS), dim3(16, 8)>>>(x, weight, y); });
  measure("columns", [&] { im2col_rows<<<dim3((PIXELS + 255) / 256, DEPTH, images), 256>>>(x, columns); });
  measure("columns, product",
          [&] { conv_matmul<<<dim3(PIXELS / 16, FILTERS / 16, images), dim3(16, 16)>>>(weight, columns, bias, y); });
  measure("1 x 1, weights in shared",
          [&] { conv_1x1_shared<<<dim3((PIXELS + 127) / 128, FILTERS / 16, images), 128>>>(x, weight, y); });
}
