// Convolutions over channels, computed directly: 1 x 1, 3 x 3, 5 x 5, transposed, and of sequences.
// sizes: 1 16 (images of 56 x 56 pixels)
#include "../micro/micro.h"

constexpr int H = 56, W = 56, LENGTH = 8192;

__global__ void conv_1x1(float* in, float* weight, float* out, int c_in, int c_out) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  int oc = blockIdx.y, n = blockIdx.z;
  if (pixel >= H * W) return;
  float sum = 0.0f;
  for (int ic = 0; ic < c_in; ic++) sum += in[(n * c_in + ic) * H * W + pixel] * weight[oc * c_in + ic];
  out[(n * c_out + oc) * H * W + pixel] = sum;
}

// A block an image and channel of the result; its weights in shared memory.
__global__ void conv_3x3(float* in, float* weight, float* out, int c_out) {
  constexpr int C_IN = 16;
  __shared__ float w[C_IN * 9];
  int oc = blockIdx.x, n = blockIdx.y;
  for (int i = threadIdx.x; i < C_IN * 9; i += blockDim.x) w[i] = weight[oc * C_IN * 9 + i];
  __syncthreads();
  for (int pixel = threadIdx.x; pixel < H * W; pixel += blockDim.x) {
    int y = pixel / W, x = pixel % W;
    float sum = 0.0f;
    for (int ic = 0; ic < C_IN; ic++)
      for (int ky = -1; ky <= 1; ky++)
        for (int kx = -1; kx <= 1; kx++)
          if (y + ky >= 0 && y + ky < H && x + kx >= 0 && x + kx < W)
            sum += in[((n * C_IN + ic) * H + y + ky) * W + x + kx] * w[ic * 9 + (ky + 1) * 3 + kx + 1];
    out[(n * c_out + oc) * H * W + pixel] = sum;
  }
}

__global__ void conv_5x5(float* in, float* weight, float* out, int images, int c_in, int c_out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= images * c_out * H * W) return;
  int x = i % W;
  int y = i / W % H;
  int oc = i / (W * H) % c_out;
  int n = i / (W * H * c_out);
  float sum = 0.0f;
  for (int ic = 0; ic < c_in; ic++) {
    for (int ky = 0; ky < 5; ky++) {
      for (int kx = 0; kx < 5; kx++) {
        int from_y = y + ky - 2;
        int from_x = x + kx - 2;
        if (from_y < 0 || from_y >= H || from_x < 0 || from_x >= W) continue;
        sum += in[((n * c_in + ic) * H + from_y) * W + from_x] * weight[((oc * c_in + ic) * 5 + ky) * 5 + kx];
      }
    }
  }
  out[i] = sum;
}

// Twice as high and wide, with windows of 4 x 4: every pixel of the result looks for those that it comes from.
__global__ void transposed_4x4(float* in, float* weight, float* out, int c_in, int c_out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int oc = blockIdx.z % c_out, n = blockIdx.z / c_out;
  if (x >= 2 * W || y >= 2 * H) return;
  float sum = 0.0f;
  for (int ic = 0; ic < c_in; ic++) {
    for (int ky = 0; ky < 4; ky++) {
      int from_y = y + 1 - ky;
      if (from_y < 0 || from_y % 2 != 0 || from_y / 2 >= H) continue;
      for (int kx = 0; kx < 4; kx++) {
        int from_x = x + 1 - kx;
        if (from_x < 0 || from_x % 2 != 0 || from_x / 2 >= W) continue;
        sum += in[((n * c_in + ic) * H + from_y / 2) * W + from_x / 2] * weight[((ic * c_out + oc) * 4 + ky) * 4 + kx];
      }
    }
  }
  out[((n * c_out + oc) * 2 * H + y) * 2 * W + x] = sum;
}

// Looks back only, every fourth element.
__global__ void conv_sequence(float* in, float* weight, float* out, int c_in, int c_out) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  int oc = blockIdx.y, n = blockIdx.z;
  float sum = 0.0f;
  for (int ic = 0; ic < c_in; ic++)
    for (int k = 0; k < 9; k++)
      if (t - 4 * k >= 0) sum += in[(n * c_in + ic) * LENGTH + t - 4 * k] * weight[(oc * c_in + ic) * 9 + k];
  out[(n * c_out + oc) * LENGTH + t] = fmaxf(sum, 0.0f);
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1);
  float *in = memory<float>(images * 64 * H * W), *out = memory<float>(images * 64 * H * W);
  float* weight = memory<float>(32 * 32 * 25);
  const dim3 twice(2 * W / 16, 2 * H / 8, images * 16);
  const int small = images * 32 * H * W;
  measure("1 x 1", [&] { conv_1x1<<<dim3((H * W + 127) / 128, 64, images), 128>>>(in, weight, out, 64, 64); });
  measure("3 x 3", [&] { conv_3x3<<<dim3(64, images), 256>>>(in, weight, out, 64); });
  measure("5 x 5", [&] { conv_5x5<<<small / 256, 256>>>(in, weight, out, images, 16, 32); });
  measure("transposed", [&] { transposed_4x4<<<twice, dim3(16, 8)>>>(in, weight, out, 32, 16); });
  measure("sequence", [&] { conv_sequence<<<dim3(LENGTH / 256, 16, images), 256>>>(in, weight, out, 16, 16); });
}
