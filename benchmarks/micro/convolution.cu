// A 3 x 3 convolution of one channel: from global memory, through a tile with its halo, and 4 pixels a thread.
// sizes: 64 8192 (the picture's side; 2 more with its border)
#include "micro.h"

constexpr int X = 32, Y = 8;  // a block of threads

__constant__ float weight[9] = {0.1f, 0.2f, 0.1f, 0.2f, -1.0f, 0.2f, 0.1f, 0.2f, 0.1f};

__global__ void from_global(const float* in, float* out, int side) {
  const int x = blockIdx.x * X + threadIdx.x, y = blockIdx.y * Y + threadIdx.y;
  float sum = 0.0f;
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) sum += weight[r * 3 + c] * in[(y + r) * (side + 2) + x + c];
  out[y * side + x] = sum;
}

__global__ void from_tile(const float* in, float* out, int side) {
  __shared__ float tile[Y + 2][X + 2];
  const int x = blockIdx.x * X, y = blockIdx.y * Y;
  for (int i = threadIdx.y * X + threadIdx.x; i < (Y + 2) * (X + 2); i += X * Y)
    tile[i / (X + 2)][i % (X + 2)] = in[(y + i / (X + 2)) * (side + 2) + x + i % (X + 2)];
  __syncthreads();
  float sum = 0.0f;
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) sum += weight[r * 3 + c] * tile[threadIdx.y + r][threadIdx.x + c];
  out[(y + threadIdx.y) * side + x + threadIdx.x] = sum;
}

// A thread goes down a column of 4 pixels; what it has read it keeps.
__global__ void four_a_thread(const float* in, float* out, int side) {
  const int x = blockIdx.x * X + threadIdx.x, y = (blockIdx.y * Y + threadIdx.y) * 4;
  float v[6][3];
  for (int r = 0; r < 6; r++)
    for (int c = 0; c < 3; c++) v[r][c] = in[(y + r) * (side + 2) + x + c];
  for (int p = 0; p < 4; p++) {
    float sum = 0.0f;
    for (int r = 0; r < 3; r++)
      for (int c = 0; c < 3; c++) sum += weight[r * 3 + c] * v[p + r][c];
    out[(y + p) * side + x] = sum;
  }
}

int main(int argc, char** argv) {
  const int side = size_of_run(argc, argv, 64);
  float *in = memory<float>((size_t)(side + 2) * (side + 2)), *out = memory<float>((size_t)side * side);
  measure("from global memory", [&] { from_global<<<dim3(side / X, side / Y), dim3(X, Y)>>>(in, out, side); });
  measure("from a tile", [&] { from_tile<<<dim3(side / X, side / Y), dim3(X, Y)>>>(in, out, side); });
  measure("4 pixels a thread", [&] { four_a_thread<<<dim3(side / X, side / Y / 4), dim3(X, Y)>>>(in, out, side); });
}
