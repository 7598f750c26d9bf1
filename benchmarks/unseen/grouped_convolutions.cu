// Convolutions in groups, of single pixels, of a row, separable, causal, and with channels last.
// sizes: 1 32 (images of 64 channels of 32 x 32 pixels)
#include "../micro/micro.h"

constexpr int CHANNELS = 64, SIDE = 32, PIXELS = SIDE * SIDE, GROUPS = 8, PER_GROUP = CHANNELS / GROUPS;

// A thread a result; the indices come out of divisions.
__global__ void grouped_3x3(float* x, float* weight, float* y, int groups, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % SIDE, row = i / SIDE % SIDE, out = i / PIXELS % CHANNELS, image = i / PIXELS / CHANNELS;
  int per_group = CHANNELS / groups, first = out / per_group * per_group;
  float sum = 0.0f;
  for (int c = 0; c < per_group; c++)
    for (int ky = 0; ky < 3; ky++)
      for (int kx = 0; kx < 3; kx++) {
        int v = row + ky - 1, u = column + kx - 1;
        if (v < 0 || v >= SIDE || u < 0 || u >= SIDE) continue;
        sum +=
            x[((image * CHANNELS + first + c) * SIDE + v) * SIDE + u] * weight[(out * per_group + c) * 9 + ky * 3 + kx];
      }
  y[i] = sum;
}

// A block a group and half an image: the group's planes with their border in shared memory, all its channels made.
__global__ void group_in_shared(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y) {
  __shared__ float planes[PER_GROUP][18][SIDE + 2];
  const int group = blockIdx.x, top = blockIdx.y * 16, image = blockIdx.z;
  const int tid = threadIdx.x, column = tid % SIDE, row = tid / SIDE;
  for (int i = tid; i < PER_GROUP * 18 * 34; i += blockDim.x) {
    const int c = i / (18 * 34), v = top + i / 34 % 18 - 1, u = i % 34 - 1;
    const bool inside = v >= 0 && v < SIDE && u >= 0 && u < SIDE;
    planes[c][i / 34 % 18][i % 34] =
        inside ? x[((image * CHANNELS + group * PER_GROUP + c) * SIDE + v) * SIDE + u] : 0.0f;
  }
  __syncthreads();
  float sums[PER_GROUP] = {};
  for (int c = 0; c < PER_GROUP; c++)
#pragma unroll
    for (int k = 0; k < 9; k++) {
      const float v = planes[c][row + k / 3][column + k % 3];
#pragma unroll
      for (int out = 0; out < PER_GROUP; out++)
        sums[out] += v * weight[((group * PER_GROUP + out) * PER_GROUP + c) * 9 + k];
    }
#pragma unroll
  for (int out = 0; out < PER_GROUP; out++)
    y[((image * CHANNELS + group * PER_GROUP + out) * SIDE + top + row) * SIDE + column] = sums[out];
}

// Single pixels: a thread has four pixels in a row and goes through the channels.
__global__ void pointwise_float4(const float4* x, const float* weight, float4* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int p = i % (PIXELS / 4), out = i / (PIXELS / 4) % CHANNELS, image = i / (PIXELS / 4) / CHANNELS;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int c = 0; c < CHANNELS; c++) {
    float4 v = x[(image * CHANNELS + c) * (PIXELS / 4) + p];
    float w = weight[out * CHANNELS + c];
    sum.x += v.x * w;
    sum.y += v.y * w;
    sum.z += v.z * w;
    sum.w += v.w * w;
  }
  y[i] = sum;
}

// The same as a product of matrices through tiles of 16 x 16, with a bias and without what is negative.
__global__ void pointwise_tile_relu(float* x, float* weight, float* bias, float* y) {
  __shared__ float w[16][16], in[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, image = blockIdx.z;
  int out = blockIdx.y * 16 + ty, p = blockIdx.x * 16 + tx;
  float sum = bias[out];
  for (int first = 0; first < CHANNELS; first += 16) {
    w[ty][tx] = weight[out * CHANNELS + first + tx];
    in[ty][tx] = x[(image * CHANNELS + first + ty) * PIXELS + p];
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += w[ty][k] * in[k][tx];
    __syncthreads();
  }
  y[(image * CHANNELS + out) * PIXELS + p] = sum > 0.0f ? sum : 0.0f;
}

// 3 x 3 in each channel and then across the channels, in one kernel: a block has two rows of all channels.
__global__ void separable(const float* x, const float* depth_weight, const float* point_weight, float* y) {
  __shared__ float middle[CHANNELS][2 * SIDE];
  int image = blockIdx.y, top = blockIdx.x * 2, p = threadIdx.x % 64, part = threadIdx.x / 64;
  int row = top + p / SIDE, column = p % SIDE;
  for (int c = part; c < CHANNELS; c += 4) {
    float sum = 0.0f;
    for (int k = 0; k < 9; k++) {
      int v = row + k / 3 - 1, u = column + k % 3 - 1;
      if (v >= 0 && v < SIDE && u >= 0 && u < SIDE)
        sum += x[((image * CHANNELS + c) * SIDE + v) * SIDE + u] * depth_weight[c * 9 + k];
    }
    middle[c][p] = sum;
  }
  __syncthreads();
  for (int out = part; out < CHANNELS; out += 4) {
    float sum = 0.0f;
    for (int c = 0; c < CHANNELS; c++) sum += middle[c][p] * point_weight[out * CHANNELS + c];
    y[(image * CHANNELS + out) * PIXELS + row * SIDE + column] = sum;
  }
}

// Along a list, only what came before: four taps a channel, and SiLU. A thread keeps the last three of its 16 inputs.
__global__ void causal_silu(const float* x, const float4* weight, const float* bias, float* y, int length,
                            int threads) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= threads) return;
  int pieces = length / 16, list = t / pieces, first = t % pieces * 16;
  const float* in = x + list * length;
  float4 w = weight[list % CHANNELS];
  float a = first ? in[first - 3] : 0.0f, b = first ? in[first - 2] : 0.0f, c = first ? in[first - 1] : 0.0f;
  for (int i = first; i < first + 16; i++) {
    float d = in[i];
    float v = a * w.x + b * w.y + c * w.z + d * w.w + bias[list % CHANNELS];
    y[list * length + i] = v / (1.0f + expf(-v));
    a = b, b = c, c = d;
  }
}

// One row of seven pixels a channel; a block has a plane's rows in shared memory.
__global__ void row_of_7(const float* x, const float* weight, float* y) {
  __shared__ float rows[8][SIDE + 6];
  int column = threadIdx.x, r = threadIdx.y, plane = blockIdx.y;
  int at = (plane * SIDE + blockIdx.x * 8 + r) * SIDE + column;
  if (column < 3) rows[r][column] = rows[r][SIDE + 3 + column] = 0.0f;
  rows[r][column + 3] = x[at];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < 7; k++) sum += rows[r][column + k] * weight[plane % CHANNELS * 7 + k];
  y[at] = sum;
}

// Channels last: a block a pixel, a thread a channel of the result; neighbouring threads read neighbouring weights.
__global__ void channels_last_3x3(const float* x, const float* weight, float* y) {
  int p = blockIdx.x, out = threadIdx.x, image = blockIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < 9; k++) {
    int v = p / SIDE + k / 3 - 1, u = p % SIDE + k % 3 - 1;
    if (v < 0 || v >= SIDE || u < 0 || u >= SIDE) continue;
    const float* pixel = x + ((image * SIDE + v) * SIDE + u) * CHANNELS;
    for (int c = 0; c < CHANNELS; c++) sum += pixel[c] * weight[(k * CHANNELS + c) * CHANNELS + out];
  }
  y[(image * PIXELS + p) * CHANNELS + out] = sum;
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), total = images * CHANNELS * PIXELS, planes = images * CHANNELS;
  float *x = memory<float>(total), *y = memory<float>(total), *weight = memory<float>(9 * CHANNELS * CHANNELS);
  float* bias = memory<float>(CHANNELS);
  measure("groups", [&] { grouped_3x3<<<total / 256, 256>>>(x, weight, y, GROUPS, total); });
  measure("groups, shared", [&] { group_in_shared<<<dim3(GROUPS, 2, images), 512>>>(x, weight, y); });
  measure("pixels, float4",
          [&] { pointwise_float4<<<total / 4 / 128, 128>>>((float4*)x, weight, (float4*)y, total / 4); });
  measure("pixels, tile",
          [&] { pointwise_tile_relu<<<dim3(PIXELS / 16, CHANNELS / 16, images), dim3(16, 16)>>>(x, weight, bias, y); });
  measure("separable", [&] { separable<<<dim3(SIDE / 2, images), 256>>>(x, weight, weight + 9 * CHANNELS, y); });
  measure("causal",
          [&] { causal_silu<<<(total / 16 + 127) / 128, 128>>>(x, (float4*)weight, bias, y, PIXELS, total / 16); });
  measure("row of seven", [&] { row_of_7<<<dim3(SIDE / 8, planes), dim3(SIDE, 8)>>>(x, weight, y); });
  measure("channels last", [&] { channels_last_3x3<<<dim3(PIXELS, images), CHANNELS>>>(x, weight, y); });
}
