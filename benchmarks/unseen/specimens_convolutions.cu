// Convolutions as students hand them in: bias, ReLU, groups, constant weights, columns, 1 x 1, strides, packed weights.
// sizes: 1 48 (images of 32 channels of 48 x 48 pixels)
#include "../micro/micro.h"

constexpr int CHANNELS = 32, SIDE = 48, OUT = 32, STEM = 16;
__constant__ float stem_weight[STEM * 3 * 3 * 3];

// A thread an output; rows and columns of the filter outside, channels inside.
__global__ void conv2d_bias_relu(const float* x, const float* weight, const float* bias, float* y, int N, int C, int H,
                                 int W, int OC, int K, int OH, int OW) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N * OC * OH * OW) return;
  int ox = i % OW, oy = i / OW % OH, oc = i / (OW * OH) % OC, n = i / (OW * OH * OC);
  float sum = bias[oc];
  for (int ky = 0; ky < K; ky++)
    for (int kx = 0; kx < K; kx++)
      for (int c = 0; c < C; c++)
        sum += x[((n * C + c) * H + oy + ky) * W + ox + kx] * weight[((oc * C + c) * K + ky) * K + kx];
  y[i] = sum > 0.0f ? sum : 0.0f;
}

// 5 x 5 with a border of zeros and groups; the z index of the block is the image and the output channel.
__global__ void conv2d_groups_5x5(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
                                  int C, int H, int W, int OC, int groups) {
  const int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y;
  const int n = blockIdx.z / OC, oc = blockIdx.z % OC;
  if (ox >= W || oy >= H) return;
  const int per_group = C / groups, first = oc / (OC / groups) * per_group;
  float sum = 0.0f;
  for (int c = 0; c < per_group; c++) {
    const float* plane = x + (n * C + first + c) * H * W;
    const float* w = weight + (oc * per_group + c) * 25;
    for (int ky = 0; ky < 5; ky++) {
      const int iy = oy + ky - 2;
      if (iy < 0 || iy >= H) continue;
      for (int kx = 0; kx < 5; kx++) {
        const int ix = ox + kx - 2;
        if (ix >= 0 && ix < W) sum += plane[iy * W + ix] * w[ky * 5 + kx];
      }
    }
  }
  y[((n * OC + oc) * H + oy) * W + ox] = sum;
}

// Three channels into sixteen: a thread a pixel keeps its 27 inputs in registers; the weights are in constant memory.
__global__ void conv2d_stem_constant(const float* x, float* y, int H, int W, int OH, int OW) {
  int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y, n = blockIdx.z;
  if (ox >= OW || oy >= OH) return;
  float patch[27];
#pragma unroll
  for (int c = 0; c < 3; c++)
#pragma unroll
    for (int k = 0; k < 9; k++) patch[c * 9 + k] = x[((n * 3 + c) * H + oy + k / 3) * W + ox + k % 3];
  for (int oc = 0; oc < STEM; oc++) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 27; k++) sum += patch[k] * stem_weight[oc * 27 + k];
    y[((n * STEM + oc) * OH + oy) * OW + ox] = sum;
  }
}

// A block a row of the columns: its channel and its place in the filter are the same for all threads.
__global__ void im2col_row(const float* x, float* columns, int C, int H, int W, int K, int OH, int OW) {
  int row = blockIdx.x, n = blockIdx.y;
  int kx = row % K, ky = row / K % K, c = row / (K * K);
  const float* plane = x + (n * C + c) * H * W;
  float* out = columns + (size_t)(n * C * K * K + row) * OH * OW;
  for (int p = threadIdx.x; p < OH * OW; p += blockDim.x) out[p] = plane[(p / OW + ky) * W + p % OW + kx];
}

// The product with the columns: blocks of 32 x 8 threads, four rows of the result a thread.
__global__ void columns_matmul_bias(const float* weight, const float* columns, const float* bias, float* y, int M,
                                    int depth, int pixels) {
  __shared__ float a[32][32], b[32][32];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
  columns += (size_t)blockIdx.z * depth * pixels;
  y += (size_t)blockIdx.z * M * pixels;
  float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int k = 0; k < depth; k += 32) {
    for (int j = 0; j < 32; j += 8) {
      a[ty + j][tx] = row + j < M && k + tx < depth ? weight[(row + j) * depth + k + tx] : 0.0f;
      b[ty + j][tx] = k + ty + j < depth && column < pixels ? columns[(k + ty + j) * pixels + column] : 0.0f;
    }
    __syncthreads();
    for (int l = 0; l < 32; l++)
      for (int j = 0; j < 4; j++) sum[j] += a[ty + 8 * j][l] * b[l][tx];
    __syncthreads();
  }
  for (int j = 0; j < 4; j++)
    if (row + 8 * j < M && column < pixels) y[(row + 8 * j) * pixels + column] = sum[j] + bias[row + 8 * j];
}

// 1 x 1: eight output channels a thread, so that each input is read OC / 8 times.
__global__ void pointwise_8_outputs(const float* __restrict__ x, const float* __restrict__ weight,
                                    const float* __restrict__ bias, float* __restrict__ y, int C, int OC, int pixels) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x, oc = blockIdx.y * 8, n = blockIdx.z;
  if (p >= pixels) return;
  float sum[8];
#pragma unroll
  for (int j = 0; j < 8; j++) sum[j] = bias[oc + j];
  for (int c = 0; c < C; c++) {
    const float v = x[(n * C + c) * pixels + p];
#pragma unroll
    for (int j = 0; j < 8; j++) sum[j] += v * weight[(oc + j) * C + c];
  }
#pragma unroll
  for (int j = 0; j < 8; j++) y[(n * OC + oc + j) * pixels + p] = sum[j];
}

// 5 x 5 with stride 2 and a border of 2: the block loads what it needs of one channel after the other.
__global__ void conv2d_strided_tile(const float* x, const float* weight, const float* bias, float* y, int C, int H,
                                    int W, int OC, int OH, int OW) {
  constexpr int BLOCK = 16, TILE = BLOCK * 2 + 3;
  __shared__ float tile[TILE][TILE], w[25];
  int n = blockIdx.z / OC, oc = blockIdx.z % OC;
  int tid = threadIdx.y * BLOCK + threadIdx.x;
  int ox = blockIdx.x * BLOCK + threadIdx.x, oy = blockIdx.y * BLOCK + threadIdx.y;
  int left = blockIdx.x * BLOCK * 2 - 2, top = blockIdx.y * BLOCK * 2 - 2;
  float sum = bias[oc];
  for (int c = 0; c < C; c++) {
    for (int i = tid; i < TILE * TILE; i += BLOCK * BLOCK) {
      int iy = top + i / TILE, ix = left + i % TILE;
      bool inside = iy >= 0 && iy < H && ix >= 0 && ix < W;
      tile[i / TILE][i % TILE] = inside ? x[((n * C + c) * H + iy) * W + ix] : 0.0f;
    }
    if (tid < 25) w[tid] = weight[(oc * C + c) * 25 + tid];
    __syncthreads();
    for (int ky = 0; ky < 5; ky++)
      for (int kx = 0; kx < 5; kx++) sum += tile[threadIdx.y * 2 + ky][threadIdx.x * 2 + kx] * w[ky * 5 + kx];
    __syncthreads();
  }
  if (ox < OW && oy < OH) y[((n * OC + oc) * OH + oy) * OW + ox] = sum;
}

// Channels last, weights packed with the output channel last: neighbouring threads are neighbouring channels.
__global__ void conv2d_packed_weights(const float* __restrict__ x, const float* __restrict__ packed,
                                      float* __restrict__ y, int C, int H, int W, int OC, int OH, int OW, int pixels) {
  const int oc = threadIdx.x, pixel = blockIdx.x * blockDim.y + threadIdx.y;
  if (pixel >= pixels) return;
  const int ox = pixel % OW, oy = pixel / OW % OH, n = pixel / (OW * OH);
  float sum = 0.0f;
  for (int ky = 0; ky < 3; ky++)
    for (int kx = 0; kx < 3; kx++) {
      const float* in = x + ((n * H + oy + ky) * W + ox + kx) * C;
      const float* w = packed + (ky * 3 + kx) * C * OC + oc;
      for (int c = 0; c < C; c++) sum += in[c] * w[c * OC];
    }
  y[pixel * OC + oc] = sum;
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), n = images * CHANNELS * SIDE * SIDE, out = SIDE - 2;
  const int pixels = out * out, total = images * OUT * pixels;
  const int wide = images * 3 * 128 * 128, stem = images * STEM * 126 * 126;  // the images of the stem are larger
  float *x = memory<float>(std::max(n, wide)), *weight = memory<float>(OUT * CHANNELS * 25);
  float *bias = memory<float>(OUT), *y = memory<float>(std::max(std::max(n, total), stem));
  float* columns = memory<float>((size_t)images * CHANNELS * 9 * pixels);
  std::vector<float> values(std::max(n, wide));
  unsigned state = 41;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(weight, values.data() + 7, OUT * CHANNELS * 25 * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bias, values.data() + 99, OUT * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(stem_weight, values.data(), sizeof(stem_weight)));
  measure("bias, ReLU, channels inside", [&] {
    conv2d_bias_relu<<<(total + 127) / 128, 128>>>(x, weight, bias, y, images, CHANNELS, SIDE, SIDE, OUT, 3, out, out);
  });
  measure("5 x 5, eight groups", [&] {
    conv2d_groups_5x5<<<dim3(2, 6, images * OUT), dim3(32, 8)>>>(x, weight, y, CHANNELS, SIDE, SIDE, OUT, 8);
  });
  measure("three channels, constant weights",
          [&] { conv2d_stem_constant<<<dim3(8, 8, images), dim3(16, 16)>>>(x, y, 128, 128, 126, 126); });
  measure("im2col, a block a row",
          [&] { im2col_row<<<dim3(CHANNELS * 9, images), 256>>>(x, columns, CHANNELS, SIDE, SIDE, 3, out, out); });
  measure("columns times weights, 32 x 8", [&] {
    dim3 grid((pixels + 31) / 32, (OUT + 31) / 32, images);
    columns_matmul_bias<<<grid, dim3(32, 8)>>>(weight, columns, bias, y, OUT, CHANNELS * 9, pixels);
  });
  measure("1 x 1, eight outputs a thread", [&] {
    pointwise_8_outputs<<<dim3(SIDE * SIDE / 64, OUT / 8, images), 64>>>(x, weight, bias, y, CHANNELS, OUT,
                                                                         SIDE * SIDE);
  });
  measure("5 x 5, stride 2, tile", [&] {
    conv2d_strided_tile<<<dim3(2, 2, images * OUT), dim3(16, 16)>>>(x, weight, bias, y, CHANNELS, SIDE, SIDE, OUT,
                                                                    SIDE / 2, SIDE / 2);
  });
  measure("channels last, packed weights", [&] {
    const int all = images * pixels;
    conv2d_packed_weights<<<(all + 3) / 4, dim3(OUT, 4)>>>(x, weight, y, CHANNELS, SIDE, SIDE, OUT, out, out, all);
  });
}
