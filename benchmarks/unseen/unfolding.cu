// Images unfolded into the columns of a matrix, so that a product convolves them, and such columns added up again.
// sizes: 1 16 (images)
#include "../micro/micro.h"

constexpr int CHANNELS = 32, SIDE = 64, KERNEL = 3, PLANE = SIDE * SIDE, PATCH = CHANNELS * KERNEL * KERNEL;

// A thread writes one element of the matrix of an image: PATCH rows, a column for each pixel.
__global__ void im2col_element(float* image, float* columns, int total, int channels, int height, int width, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int out_x = i % width;
  int out_y = i / width % height;
  int row = i / (width * height) % (channels * k * k);
  int n = i / (width * height) / (channels * k * k);
  int kx = row % k, ky = row / k % k, c = row / (k * k);
  int x = out_x + kx - k / 2, y = out_y + ky - k / 2;
  if (x >= 0 && x < width && y >= 0 && y < height)
    columns[i] = image[((n * channels + c) * height + y) * width + x];
  else
    columns[i] = 0.0f;
}

// A thread writes what one channel of one pixel's surroundings holds: nine elements, each in another row.
__global__ void im2col_channel(const float* __restrict__ image, float* __restrict__ columns) {
  const int pixel = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, n = blockIdx.z;
  const int x = pixel % SIDE, y = pixel / SIDE;
  const float* plane = image + (n * CHANNELS + c) * PLANE;
  float* column = columns + (size_t)(n * PATCH + c * 9) * PLANE + pixel;
#pragma unroll
  for (int ky = 0; ky < 3; ky++)
#pragma unroll
    for (int kx = 0; kx < 3; kx++) {
      const int from_y = y + ky - 1, from_x = x + kx - 1;
      const bool inside = from_y >= 0 && from_y < SIDE && from_x >= 0 && from_x < SIDE;
      column[(ky * 3 + kx) * PLANE] = inside ? plane[from_y * SIDE + from_x] : 0.0f;
    }
}

// The matrix the other way: a pixel's patch lies together. A block a row of pixels, a thread an element of the patch.
__global__ void im2row(const float* image, float* rows) {
  int n = blockIdx.x / SIDE, y = blockIdx.x % SIDE;
  for (int e = threadIdx.x; e < PATCH; e += blockDim.x) {
    int kx = e % KERNEL, ky = e / KERNEL % KERNEL, c = e / (KERNEL * KERNEL);
    int from_y = y + ky - 1;
    for (int x = 0; x < SIDE; x++) {
      int from_x = x + kx - 1;
      float v = 0.0f;
      if (from_y >= 0 && from_y < SIDE && from_x >= 0 && from_x < SIDE)
        v = image[((n * CHANNELS + c) * SIDE + from_y) * SIDE + from_x];
      rows[((size_t)(n * SIDE + y) * SIDE + x) * PATCH + e] = v;
    }
  }
}

// Any stride, padding and dilation, and 64-bit indices throughout.
__global__ void im2col_general(const float* image, float* columns, int64_t total, int64_t channels, int64_t height,
                               int64_t width, int64_t k, int64_t stride, int64_t padding, int64_t dilation,
                               int64_t out_height, int64_t out_width) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < total; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t out_x = i % out_width, out_y = i / out_width % out_height;
    int64_t c = i / out_width / out_height % channels, n = i / out_width / out_height / channels;
    for (int64_t ky = 0; ky < k; ky++)
      for (int64_t kx = 0; kx < k; kx++) {
        int64_t y = out_y * stride - padding + ky * dilation, x = out_x * stride - padding + kx * dilation;
        float v =
            y >= 0 && y < height && x >= 0 && x < width ? image[((n * channels + c) * height + y) * width + x] : 0;
        columns[(((n * channels + c) * k * k + ky * k + kx) * out_height + out_y) * out_width + out_x] = v;
      }
  }
}

// A thread adds up the nine places where its pixel lies.
__global__ void col2im_gather(const float* columns, float* image, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int x = i % SIDE, y = i / SIDE % SIDE, plane = i / PLANE;
  float sum = 0.0f;
  for (int ky = 0; ky < KERNEL; ky++) {
    int at_y = y - ky + 1;
    if (at_y < 0 || at_y >= SIDE) continue;
    for (int kx = 0; kx < KERNEL; kx++) {
      int at_x = x - kx + 1;
      if (at_x < 0 || at_x >= SIDE) continue;
      sum += columns[((plane * KERNEL + ky) * KERNEL + kx) * PLANE + at_y * SIDE + at_x];
    }
  }
  image[i] = sum;
}

// A thread adds one element of the matrix to its pixel.
__global__ void col2im_atomic(const float* columns, float* image, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int row = i / PLANE, pixel = i % PLANE;
  int kx = row % KERNEL, ky = row / KERNEL % KERNEL, plane = row / (KERNEL * KERNEL);
  int x = pixel % SIDE + kx - 1, y = pixel / SIDE + ky - 1;
  if (x >= 0 && x < SIDE && y >= 0 && y < SIDE) atomicAdd(image + plane * PLANE + y * SIDE + x, columns[i]);
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1);
  const int pixels = images * CHANNELS * PLANE, total = images * PATCH * PLANE;
  float *image = memory<float>(pixels), *columns = memory<float>(total);
  measure("im2col, a thread an element",
          [&] { im2col_element<<<total / 256, 256>>>(image, columns, total, CHANNELS, SIDE, SIDE, KERNEL); });
  measure("im2col, a thread a channel",
          [&] { im2col_channel<<<dim3(PLANE / 128, CHANNELS, images), 128>>>(image, columns); });
  measure("im2row", [&] { im2row<<<images * SIDE, 96>>>(image, columns); });
  const int half = SIDE / 2, general = images * CHANNELS * half * half;
  measure("im2col, stride 2, dilation 2", [&] {
    im2col_general<<<(general + 511) / 512, 256>>>(image, columns, general, CHANNELS, SIDE, SIDE, KERNEL, 2, 2, 2, half,
                                                   half);
  });
  measure("col2im, gathered", [&] { col2im_gather<<<pixels / 256, 256>>>(columns, image, pixels); });
  measure("col2im, atomics", [&] { col2im_atomic<<<total / 512, 512>>>(columns, image, total); });
}
