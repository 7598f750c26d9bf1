// A step over a cube of cells with 7 and with 27 points: a thread a cell, and a thread a column of cells.
// sizes: 32 256 (the side)
#include "../micro/micro.h"

__global__ void seven_points(float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || x >= n - 1 || y < 1 || y >= n - 1 || z < 1 || z >= n - 1) return;
  int i = (z * n + y) * n + x;
  out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n]);
}

// What is below, here and above stays in registers on the way up.
__global__ void seven_points_column(const float* __restrict__ in, float* __restrict__ out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || x >= n - 1 || y < 1 || y >= n - 1) return;
  float below = in[y * n + x], here = in[(n + y) * n + x];
  for (int z = 1; z < n - 1; z++) {
    int i = (z * n + y) * n + x;
    float above = in[i + n * n];
    out[i] = 0.4f * here + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + below + above);
    below = here;
    here = above;
  }
}

__global__ void all_27(float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n * n) return;
  int x = i % n, y = i / n % n, z = i / n / n;
  float sum = 0.0f;
  for (int dz = -1; dz <= 1; dz++)
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++)
        if (x + dx >= 0 && x + dx < n && y + dy >= 0 && y + dy < n && z + dz >= 0 && z + dz < n)
          sum += in[((z + dz) * n + y + dy) * n + x + dx];
  out[i] = sum / 27.0f;
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 32);
  float *in = memory<float>((size_t)n * n * n), *out = memory<float>((size_t)n * n * n);
  const dim3 boxes(n / 8, n / 8, n / 8);
  measure("7 points", [&] { seven_points<<<boxes, dim3(8, 8, 8)>>>(in, out, n); });
  measure("7 points, a column", [&] { seven_points_column<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(in, out, n); });
  measure("27 points", [&] { all_27<<<n * n * n / 256, 256>>>(in, out, n); });
}
