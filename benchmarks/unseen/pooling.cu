// Pooling of images: average and maximum of small windows, and of whole planes.
// sizes: 32 4096 (planes of 112 x 112 floats)
#include "../micro/micro.h"

constexpr int H = 112, W = 112, H2 = H / 2, W2 = W / 2;

__global__ void average_2x2(float* in, float* out, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int x = i % W2;
  int y = i / W2 % H2;
  int plane = i / (W2 * H2);
  float sum = 0.0f;
  for (int dy = 0; dy < 2; dy++)
    for (int dx = 0; dx < 2; dx++) sum += in[(plane * H + 2 * y + dy) * W + 2 * x + dx];
  out[i] = sum / 4.0f;
}

// Windows of 3 x 3, two apart; the border counts as nothing.
__global__ void max_3x3(float* in, float* out, long total) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= total) return;
  long x = i % W2;
  long y = i / W2 % H2;
  long plane = i / (W2 * H2);
  float most = -INFINITY;
  for (int dy = -1; dy <= 1; dy++) {
    for (int dx = -1; dx <= 1; dx++) {
      long from_y = 2 * y + dy, from_x = 2 * x + dx;
      if (from_y >= 0 && from_y < H && from_x >= 0 && from_x < W) {
        float v = in[(plane * H + from_y) * W + from_x];
        if (v > most) most = v;
      }
    }
  }
  out[i] = most;
}

__global__ void max_2x2_float2(const float2* in, float* out) {
  int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, plane = blockIdx.y;
  float2 top = in[(plane * H + 2 * y) * W2 + x];
  float2 bottom = in[(plane * H + 2 * y + 1) * W2 + x];
  out[(plane * H2 + y) * W2 + x] = fmaxf(fmaxf(top.x, top.y), fmaxf(bottom.x, bottom.y));
}

__global__ void global_average(float* in, float* out) {
  __shared__ float part[256];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < H * W; i += blockDim.x) sum += in[blockIdx.x * H * W + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0] / (H * W);
}

__global__ void global_max_thread(float* in, float* out, int planes) {
  int plane = blockIdx.x * blockDim.x + threadIdx.x;
  if (plane < planes) {
    float most = in[plane * H * W];
    for (int i = 1; i < H * W; i++) most = fmaxf(most, in[plane * H * W + i]);
    out[plane] = most;
  }
}

int main(int argc, char** argv) {
  const int planes = size_of_run(argc, argv, 32), total = planes * H2 * W2;
  float *in = memory<float>((size_t)planes * H * W), *out = memory<float>(total);
  measure("average 2 x 2", [&] { average_2x2<<<total / 256, 256>>>(in, out, total); });
  measure("max 3 x 3", [&] { max_3x3<<<total / 128, 128>>>(in, out, total); });
  measure("max 2 x 2, float2", [&] { max_2x2_float2<<<dim3(H2 / 4, planes), dim3(W2, 4)>>>((float2*)in, out); });
  measure("global average", [&] { global_average<<<planes, 256>>>(in, out); });
  measure("global max, a thread a plane", [&] { global_max_thread<<<planes / 32, 32>>>(in, out, planes); });
}
