// Images made twice as high and wide: nearest neighbour, bilinear, pixel shuffle.
// sizes: 1 48 (images of 64 channels of 56 x 56 floats)
#include "../micro/micro.h"

constexpr int C = 64, H = 56, W = 56;

__global__ void nearest(float* in, float* out, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int x = i % (2 * W);
  int y = i / (2 * W) % (2 * H);
  int plane = i / (2 * W) / (2 * H);
  out[i] = in[(plane * H + y / 2) * W + x / 2];
}

// Each thread reads one pixel and writes it four times.
__global__ void nearest_from_input(float* in, float* out, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int x = i % W;
  int y = i / W % H;
  int plane = i / (W * H);
  float v = in[i];
  for (int dy = 0; dy < 2; dy++)
    for (int dx = 0; dx < 2; dx++) out[(plane * 2 * H + 2 * y + dy) * 2 * W + 2 * x + dx] = v;
}

__global__ void bilinear(float* in, float* out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int plane = blockIdx.z;
  if (x >= 2 * W || y >= 2 * H) return;
  float from_x = fmaxf((x + 0.5f) / 2.0f - 0.5f, 0.0f);
  float from_y = fmaxf((y + 0.5f) / 2.0f - 0.5f, 0.0f);
  int x0 = (int)from_x, y0 = (int)from_y;
  int x1 = min(x0 + 1, W - 1), y1 = min(y0 + 1, H - 1);
  float fx = from_x - x0, fy = from_y - y0;
  float* image = in + plane * H * W;
  float top = image[y0 * W + x0] * (1.0f - fx) + image[y0 * W + x1] * fx;
  float bottom = image[y1 * W + x0] * (1.0f - fx) + image[y1 * W + x1] * fx;
  out[(plane * 2 * H + y) * 2 * W + x] = top * (1.0f - fy) + bottom * fy;
}

// Four channels become one of twice the height and width.
__global__ void pixel_shuffle(float* in, float* out, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int x = i % (2 * W);
  int y = i / (2 * W) % (2 * H);
  int c = i / (2 * W) / (2 * H) % (C / 4);
  int n = i / (2 * W) / (2 * H) / (C / 4);
  int from = c * 4 + y % 2 * 2 + x % 2;
  out[i] = in[((n * C + from) * H + y / 2) * W + x / 2];
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1);
  const int planes = images * C, total = planes * H * W;
  float *in = memory<float>(total), *out = memory<float>(4 * (size_t)total);
  const dim3 blocks((2 * W + 15) / 16, (2 * H + 15) / 16, planes);
  measure("nearest", [&] { nearest<<<4 * total / 256, 256>>>(in, out, 4 * total); });
  measure("nearest, a thread a pixel read", [&] { nearest_from_input<<<total / 256, 256>>>(in, out, total); });
  measure("bilinear", [&] { bilinear<<<blocks, dim3(16, 16)>>>(in, out); });
  measure("pixel shuffle", [&] { pixel_shuffle<<<total / 64, 64>>>(in, out, total); });
}
