// Depthwise convolutions: each plane with weights of its own, from global memory and through a tile.
// sizes: 32 8192 (planes of 56 x 56 floats)
#include "../micro/micro.h"

constexpr int H = 56, W = 56, CHANNELS = 32;

__global__ void depthwise_3x3(float* in, float* weight, float* out, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int x = i % W;
  int y = i / W % H;
  int plane = i / (W * H);
  int c = plane % CHANNELS;
  float sum = 0.0f;
  for (int ky = 0; ky < 3; ky++) {
    for (int kx = 0; kx < 3; kx++) {
      int from_y = y + ky - 1;
      int from_x = x + kx - 1;
      if (from_y >= 0 && from_y < H && from_x >= 0 && from_x < W)
        sum += in[(plane * H + from_y) * W + from_x] * weight[c * 9 + ky * 3 + kx];
    }
  }
  out[i] = sum;
}

// A block makes 8 x 8 pixels of a plane from 10 x 10.
__global__ void depthwise_3x3_tile(float* in, float* weight, float* out) {
  __shared__ float tile[10][10];
  __shared__ float w[9];
  int plane = blockIdx.z, tid = threadIdx.y * 8 + threadIdx.x;
  for (int i = tid; i < 100; i += 64) {
    int y = blockIdx.y * 8 + i / 10 - 1, x = blockIdx.x * 8 + i % 10 - 1;
    tile[i / 10][i % 10] = y >= 0 && y < H && x >= 0 && x < W ? in[(plane * H + y) * W + x] : 0.0f;
  }
  if (tid < 9) w[tid] = weight[plane % CHANNELS * 9 + tid];
  __syncthreads();
  float sum = 0.0f;
  for (int ky = 0; ky < 3; ky++)
    for (int kx = 0; kx < 3; kx++) sum += tile[threadIdx.y + ky][threadIdx.x + kx] * w[ky * 3 + kx];
  int y = blockIdx.y * 8 + threadIdx.y, x = blockIdx.x * 8 + threadIdx.x;
  out[(plane * H + y) * W + x] = sum;
}

// A block a plane, the whole of it in shared memory.
__global__ void depthwise_5x5_plane(const float* in, const float* weight, float* out) {
  __shared__ float plane[H * W];
  in += blockIdx.x * H * W;
  out += blockIdx.x * H * W;
  weight += blockIdx.x % CHANNELS * 25;
  for (int i = threadIdx.x; i < H * W; i += blockDim.x) plane[i] = in[i];
  __syncthreads();
  for (int i = threadIdx.x; i < H * W; i += blockDim.x) {
    int y = i / W, x = i % W;
    float sum = 0.0f;
    for (int dy = -2; dy <= 2; dy++)
      for (int dx = -2; dx <= 2; dx++)
        if (y + dy >= 0 && y + dy < H && x + dx >= 0 && x + dx < W)
          sum += plane[(y + dy) * W + x + dx] * weight[(dy + 2) * 5 + dx + 2];
    out[i] = sum;
  }
}

int main(int argc, char** argv) {
  const int planes = size_of_run(argc, argv, 32), total = planes * H * W;
  float *in = memory<float>(total), *out = memory<float>(total), *weight = memory<float>(CHANNELS * 25);
  const dim3 tiles(W / 8, H / 8, planes);
  measure("3 x 3", [&] { depthwise_3x3<<<total / 256, 256>>>(in, weight, out, total); });
  measure("3 x 3, tile", [&] { depthwise_3x3_tile<<<tiles, dim3(8, 8)>>>(in, weight, out); });
  measure("5 x 5, plane in shared", [&] { depthwise_5x5_plane<<<planes, 256>>>(in, weight, out); });
}
