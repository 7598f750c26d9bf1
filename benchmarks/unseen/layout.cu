// Images put into another order: channels last and first again, padded, flipped, joined, every other pixel.
// sizes: 1 128 (images of 64 channels of 56 x 56 floats)
#include "../micro/micro.h"

constexpr int C = 64, H = 56, W = 56;

__global__ void nchw_to_nhwc(float* in, float* out, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int c = i % C;
  int w = i / C % W;
  int h = i / (C * W) % H;
  int n = i / (C * W * H);
  out[i] = in[((n * C + c) * H + h) * W + w];
}

// An image is a matrix of H W rows and C columns: it is transposed by tiles.
__global__ void nhwc_to_nchw(const float* in, float* out) {
  __shared__ float tile[32][33];
  in += blockIdx.z * (size_t)C * H * W;
  out += blockIdx.z * (size_t)C * H * W;
  int c = blockIdx.x * 32 + threadIdx.x;
  int pixel = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(pixel + j) * C + c];
  __syncthreads();
  pixel = blockIdx.y * 32 + threadIdx.x;
  c = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(c + j) * H * W + pixel] = tile[threadIdx.x][threadIdx.y + j];
}

__global__ void pad(float* in, float* out, int planes, int border) {
  int height = H + 2 * border, width = W + 2 * border;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= planes * height * width) return;
  int x = i % width - border;
  int y = i / width % height - border;
  int plane = i / (width * height);
  float v = 0.0f;
  if (x >= 0 && x < W && y >= 0 && y < H) v = in[(plane * H + y) * W + x];
  out[i] = v;
}

__global__ void flip(float* in, float* out) {
  int x = threadIdx.x;
  int y = blockIdx.x * blockDim.y + threadIdx.y;
  int plane = blockIdx.y;
  out[(plane * H + y) * W + x] = in[(plane * H + y) * W + (W - 1 - x)];
}

// The channels of a and then the channels of b.
__global__ void concat(float* a, float* b, float* out, long total) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i >= total) return;
  long pixel = i % (H * W);
  long c = i / (H * W) % (2 * C);
  long n = i / (H * W) / (2 * C);
  if (c < C)
    out[i] = a[(n * C + c) * H * W + pixel];
  else
    out[i] = b[(n * C + c - C) * H * W + pixel];
}

__global__ void every_other(float* in, float* out, int planes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= planes * (H / 2) * (W / 2)) return;
  int x = i % (W / 2);
  int y = i / (W / 2) % (H / 2);
  int plane = i / (W / 2) / (H / 2);
  out[i] = in[(plane * H + 2 * y) * W + 2 * x];
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1);
  const int planes = images * C, total = planes * H * W, padded = planes * (H + 2) * (W + 2);
  float *in = memory<float>(total), *other = memory<float>(total), *out = memory<float>(2 * (size_t)total);
  measure("nchw to nhwc", [&] { nchw_to_nhwc<<<total / 256, 256>>>(in, out, total); });
  measure("nhwc to nchw, tile", [&] { nhwc_to_nchw<<<dim3(C / 32, H * W / 32, images), dim3(32, 8)>>>(in, out); });
  measure("pad", [&] { pad<<<(padded + 255) / 256, 256>>>(in, out, planes, 1); });
  measure("flip", [&] { flip<<<dim3(H / 4, planes), dim3(W, 4)>>>(in, out); });
  measure("concat", [&] { concat<<<2 * total / 512, 512>>>(in, other, out, 2 * (long)total); });
  measure("every other pixel", [&] { every_other<<<total / 4 / 128, 128>>>(in, out, planes); });
}
