// Threads to spare: a last block that is half full, a picture that no block divides, blocks that are no whole number of warps.
// sizes: 127 8191 (the picture's width; it is 3/4 as high)
#include "micro.h"

__global__ void line(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 2.0f + 1.0f;
}

__global__ void picture(const float* x, float* y, int width, int height) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  y[row * width + column] = x[row * width + column] * 2.0f + 1.0f;
}

// The mean of a pixel and its neighbours, as far as there are any.
__global__ void blur(const float* x, float* y, int width, int height) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  float sum = 0.0f;
  int count = 0;
  for (int r = max(row - 1, 0); r <= min(row + 1, height - 1); r++)
    for (int c = max(column - 1, 0); c <= min(column + 1, width - 1); c++, count++) sum += x[r * width + c];
  y[row * width + column] = sum / count;
}

int main(int argc, char** argv) {
  const int width = size_of_run(argc, argv, 127), height = width * 3 / 4, n = width * height;
  float *x = memory<float>(n), *y = memory<float>(n);
  measure("last block half full", [&] { line<<<n / 256, 256>>>(x, y, n / 256 * 256 - 156); });
  measure("blocks of 48", [&] { line<<<n / 48, 48>>>(x, y, n); });
  measure("blocks of 20", [&] { line<<<n / 20, 20>>>(x, y, n); });
  measure("picture 16 x 16",
          [&] { picture<<<dim3(width / 16 + 1, height / 16 + 1), dim3(16, 16)>>>(x, y, width, height); });
  measure("picture 8 x 4", [&] { picture<<<dim3(width / 8 + 1, height / 4 + 1), dim3(8, 4)>>>(x, y, width, height); });
  measure("blur", [&] { blur<<<dim3(width / 32 + 1, height / 8 + 1), dim3(32, 8)>>>(x, y, width, height); });
}
