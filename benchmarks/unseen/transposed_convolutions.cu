// Transposed and dilated convolutions of lists, planes and cubes; long steps over sound, and patches of pictures.
// sizes: 1 16 (images)
#include "../micro/micro.h"

constexpr int LENGTH = 512, PLANE = 28, CUBE = 12;

// Every result looks for the inputs that reach it: most do not, which divisions find out.
__global__ void transposed_1d(float* x, float* weight, float* y, int channels, int length, int stride, int dilation,
                              int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int out_length = (length - 1) * stride + 4 * dilation + 1;
  int at = i % out_length, out = i / out_length % channels, image = i / out_length / channels;
  float sum = 0.0f;
  for (int c = 0; c < channels; c++) {
    for (int k = 0; k < 5; k++) {
      int from = at - k * dilation;
      if (from < 0 || from % stride != 0) continue;
      from /= stride;
      if (from < length) sum += x[(image * channels + c) * length + from] * weight[(c * channels + out) * 5 + k];
    }
  }
  y[i] = sum;
}

// Every input adds what it gives to all results that it reaches.
__global__ void spread_2d(const float* x, const float* weight, float* y, int channels, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int column = i % PLANE, row = i / PLANE % PLANE, c = i / (PLANE * PLANE) % channels;
  int image = i / (PLANE * PLANE) / channels, side = PLANE * 2 + 1;
  float v = x[i];
  for (int out = 0; out < channels; out++)
    for (int k = 0; k < 9; k++)
      atomicAdd(&y[((image * channels + out) * side + row * 2 + k / 3) * side + column * 2 + k % 3],
                v * weight[(c * channels + out) * 9 + k]);
}

// Kernels of 4 x 4 in steps of two: each result has 2 x 2 of them. A block has one channel's weights in shared memory.
__global__ void transposed_2d_phases(const float* __restrict__ x, const float* __restrict__ weight,
                                     float* __restrict__ y, int channels) {
  extern __shared__ float w[];
  const int out = blockIdx.y, image = blockIdx.z, side = 2 * PLANE;
  for (int i = threadIdx.x; i < channels * 16; i += blockDim.x) w[i] = weight[out * channels * 16 + i];
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= side * side) return;
  const int row = i / side, column = i % side;
  const int top = (row + 1) / 2, left = (column + 1) / 2, ky = (row + 1) % 2, kx = (column + 1) % 2;
  float sum = 0.0f;
  for (int c = 0; c < channels; c++) {
    const float* plane = x + (image * channels + c) * PLANE * PLANE;
#pragma unroll
    for (int dy = 0; dy < 2; dy++)
#pragma unroll
      for (int dx = 0; dx < 2; dx++)
        if (top - dy >= 0 && top - dy < PLANE && left - dx >= 0 && left - dx < PLANE)
          sum += plane[(top - dy) * PLANE + left - dx] * w[c * 16 + (ky + 2 * dy) * 4 + kx + 2 * dx];
  }
  y[(image * channels + out) * side * side + i] = sum;
}

// Cubes, in steps of two, with all 27 places tried.
__global__ void transposed_3d(float* x, float* weight, float* y, int channels, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int side = 2 * CUBE + 1;
  int ox = i % side, oy = i / side % side, oz = i / side / side % side;
  int out = i / side / side / side % channels, image = i / side / side / side / channels;
  float sum = 0.0f;
  for (int c = 0; c < channels; c++)
    for (int kz = 0; kz < 3; kz++)
      for (int ky = 0; ky < 3; ky++)
        for (int kx = 0; kx < 3; kx++) {
          int z = oz - kz, v = oy - ky, u = ox - kx;
          if (z >= 0 && v >= 0 && u >= 0 && z % 2 == 0 && v % 2 == 0 && u % 2 == 0 && z / 2 < CUBE && v / 2 < CUBE &&
              u / 2 < CUBE)
            sum += x[(((image * channels + c) * CUBE + z / 2) * CUBE + v / 2) * CUBE + u / 2] *
                   weight[((c * channels + out) * 3 + kz) * 9 + ky * 3 + kx];
        }
  y[i] = sum;
}

// Three elements four apart, over 64 channels; each thread makes four channels' results from what it reads once.
__global__ void dilated_1d(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y,
                           int channels, int length) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, out = blockIdx.y * 4, image = blockIdx.z;
  if (at >= length) return;
  float sums[4] = {};
  for (int c = 0; c < channels; c++) {
    const float* list = x + (image * channels + c) * length;
#pragma unroll
    for (int k = 0; k < 3; k++) {
      const int from = at + (k - 1) * 4;
      const float v = from >= 0 && from < length ? list[from] : 0.0f;
#pragma unroll
      for (int o = 0; o < 4; o++) sums[o] += v * weight[((out + o) * channels + c) * 3 + k];
    }
  }
#pragma unroll
  for (int o = 0; o < 4; o++) y[(image * channels + out + o) * length + at] = sums[o];
}

// Planes: 3 x 3 pixels two apart, from a tile with a border of two, channel after channel.
__global__ void dilated_2d_tile(const float* x, const float* weight, float* y, int channels, int side) {
  __shared__ float tile[20][20];
  int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
  int image = blockIdx.z / channels, out = blockIdx.z % channels;
  float sum = 0.0f;
  for (int c = 0; c < channels; c++) {
    for (int i = tid; i < 400; i += 256) {
      int row = blockIdx.y * 16 + i / 20 - 2, column = blockIdx.x * 16 + i % 20 - 2;
      bool inside = row >= 0 && row < side && column >= 0 && column < side;
      tile[i / 20][i % 20] = inside ? x[((image * channels + c) * side + row) * side + column] : 0.0f;
    }
    __syncthreads();
    for (int k = 0; k < 9; k++) sum += tile[ty + k / 3 * 2][tx + k % 3 * 2] * weight[(out * channels + c) * 9 + k];
    __syncthreads();
  }
  y[(blockIdx.z * side + blockIdx.y * 16 + ty) * side + blockIdx.x * 16 + tx] = sum;
}

// Sound in long steps: windows of 64 samples, 16 apart; a warp a window and channel.
__global__ void long_steps(const float* x, const float* weight, float* y, int samples, int windows, int channels) {
  int window = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x, image = blockIdx.y;
  if (window >= windows) return;
  float first = x[image * samples + window * 16 + lane], second = x[image * samples + window * 16 + 32 + lane];
  for (int c = 0; c < channels; c++) {
    float sum = first * weight[c * 64 + lane] + second * weight[c * 64 + 32 + lane];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (lane == 0) y[(image * channels + c) * windows + window] = sum;
  }
}

// Patches of 16 x 16 pixels of three colours become 192 features: a block a patch, a thread a feature.
__global__ void embed_patches(const float* x, const float* weight, float* y, int side) {
  __shared__ float patch[768];
  int across = side / 16, image = blockIdx.y, top = blockIdx.x / across * 16, left = blockIdx.x % across * 16;
  for (int i = threadIdx.x; i < 768; i += blockDim.x)
    patch[i] = x[((image * 3 + i / 256) * side + top + i / 16 % 16) * side + left + i % 16];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 768; k++) sum += patch[k] * weight[k * 192 + threadIdx.x];
  y[(image * gridDim.x + blockIdx.x) * 192 + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1);
  float *x = memory<float>(images * 160000), *y = memory<float>(images * 160000), *weight = memory<float>(147456);
  const int long_lists = images * 32 * (511 * 2 + 13), cubes = images * 8 * 25 * 25 * 25;
  measure("transposed, lists",
          [&] { transposed_1d<<<(long_lists + 127) / 128, 128>>>(x, weight, y, 32, LENGTH, 2, 3, long_lists); });
  const int inputs = images * 16 * PLANE * PLANE;
  measure("transposed, spread", [&] { spread_2d<<<(inputs + 255) / 256, 256>>>(x, weight, y, 16, inputs); });
  measure("transposed, planes", [&] {
    transposed_2d_phases<<<dim3((56 * 56 + 127) / 128, 32, images), 128, 32 * 16 * sizeof(float)>>>(x, weight, y, 32);
  });
  measure("transposed, cubes", [&] { transposed_3d<<<(cubes + 255) / 256, 256>>>(x, weight, y, 8, cubes); });
  measure("dilated, lists", [&] { dilated_1d<<<dim3(2048 / 128, 16, images), 128>>>(x, weight, y, 64, 2048); });
  measure("dilated, planes", [&] { dilated_2d_tile<<<dim3(4, 4, images * 16), dim3(16, 16)>>>(x, weight, y, 16, 64); });
  const int windows = (16000 - 64) / 16 + 1;
  measure("long steps",
          [&] { long_steps<<<dim3((windows + 3) / 4, images), dim3(32, 4)>>>(x, weight, y, 16000, windows, 40); });
  measure("patches", [&] { embed_patches<<<dim3(196, images), 192>>>(x, weight, y, 224); });
}
