// Images turned, warped, enlarged with 16 neighbours, recoloured, and smoothed so that edges stay.
// sizes: 1 32 (images of 3 x 256 x 256)
#include "../micro/micro.h"

constexpr int COLOURS = 3, SIDE = 256, PLANE = SIDE * SIDE;

__device__ int clamp_to(int i, int size) { return i < 0 ? 0 : (i >= size ? size - 1 : i); }

// The nearest pixel of the image turned about its middle.
__global__ void rotate_nearest(float* image, float* out, float angle) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int plane = blockIdx.z;
  float middle = (SIDE - 1) / 2.0f;
  float from_x = cosf(angle) * (x - middle) + sinf(angle) * (y - middle) + middle;
  float from_y = -sinf(angle) * (x - middle) + cosf(angle) * (y - middle) + middle;
  int i = (int)roundf(from_x), j = (int)roundf(from_y);
  float v = 0.0f;
  if (i >= 0 && i < SIDE && j >= 0 && j < SIDE) v = image[(plane * SIDE + j) * SIDE + i];
  out[(plane * SIDE + y) * SIDE + x] = v;
}

// Each pixel's place between -1 and 1 lies in memory; all colours of a pixel are a thread's.
__global__ void grid_sample(const float* __restrict__ image, const float2* __restrict__ grid, float* __restrict__ out,
                            int total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int n = i / PLANE, pixel = i % PLANE;
  const float2 at = grid[i];
  const float x = (at.x + 1.0f) * 0.5f * (SIDE - 1), y = (at.y + 1.0f) * 0.5f * (SIDE - 1);
  const int left = (int)floorf(x), top = (int)floorf(y);
  const float right_share = x - left, bottom_share = y - top;
  for (int c = 0; c < COLOURS; c++) {
    const float* plane = image + (n * COLOURS + c) * PLANE;
    float sum = 0.0f;
#pragma unroll
    for (int dy = 0; dy < 2; dy++)
#pragma unroll
      for (int dx = 0; dx < 2; dx++) {
        const int from_x = left + dx, from_y = top + dy;
        if (from_x < 0 || from_x >= SIDE || from_y < 0 || from_y >= SIDE) continue;
        sum += plane[from_y * SIDE + from_x] * (dx ? right_share : 1.0f - right_share) *
               (dy ? bottom_share : 1.0f - bottom_share);
      }
    out[(n * COLOURS + c) * PLANE + pixel] = sum;
  }
}

__device__ float cubic(float d) {
  d = fabsf(d);
  if (d < 1.0f) return (1.25f * d - 2.25f) * d * d + 1.0f;
  return ((-0.75f * d + 3.75f) * d - 6.0f) * d + 3.0f;
}

// The middle of each image, made twice as high and wide.
__global__ void enlarge_bicubic(const float* image, float* out, int planes) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= planes * PLANE) return;
  int out_x = i % SIDE, out_y = i / SIDE % SIDE, plane = i / PLANE;
  float x = (out_x + 0.5f) / 2.0f - 0.5f + SIDE / 4, y = (out_y + 0.5f) / 2.0f - 0.5f + SIDE / 4;
  int left = (int)floorf(x), top = (int)floorf(y);
  float sum = 0.0f;
  for (int j = -1; j <= 2; j++) {
    float row = 0.0f;
    for (int k = -1; k <= 2; k++)
      row += cubic(x - (left + k)) * image[plane * PLANE + clamp_to(top + j, SIDE) * SIDE + clamp_to(left + k, SIDE)];
    sum += cubic(y - (top + j)) * row;
  }
  out[i] = sum;
}

// A matrix of 3 x 3 and an offset for the colours of each pixel.
__global__ void recolour(const float* image, const float* matrix, float* out) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x;
  const float* from = image + blockIdx.y * COLOURS * PLANE + pixel;
  float* to = out + blockIdx.y * COLOURS * PLANE + pixel;
  for (int row = 0; row < 3; row++) {
    float v = matrix[9 + row];
    for (int c = 0; c < 3; c++) v += matrix[row * 3 + c] * from[c * PLANE];
    to[row * PLANE] = fminf(fmaxf(v, 0.0f), 1.0f);
  }
}

// Neighbours count less the farther they are and the more they differ.
__global__ void bilateral(const float* image, float* out, float distance_scale, float value_scale) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  const float* plane = image + (size_t)blockIdx.z * PLANE;
  float centre = plane[y * SIDE + x], sum = 0.0f, weights = 0.0f;
  for (int dy = -2; dy <= 2; dy++)
    for (int dx = -2; dx <= 2; dx++) {
      float v = plane[clamp_to(y + dy, SIDE) * SIDE + clamp_to(x + dx, SIDE)];
      float w = expf(-(dx * dx + dy * dy) * distance_scale - (v - centre) * (v - centre) * value_scale);
      sum += w * v;
      weights += w;
    }
  out[(size_t)blockIdx.z * PLANE + y * SIDE + x] = sum / weights;
}

__device__ void order(float& a, float& b) {
  float low = fminf(a, b);
  b = fmaxf(a, b);
  a = low;
}

// The median of nine pixels, from a tile with a border.
__global__ void median(const float* __restrict__ image, float* __restrict__ out) {
  __shared__ float tile[10][34];
  const int x0 = blockIdx.x * 32, y0 = blockIdx.y * 8;
  const float* plane = image + (size_t)blockIdx.z * PLANE;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 10 * 34; i += 256)
    tile[i / 34][i % 34] = plane[clamp_to(y0 + i / 34 - 1, SIDE) * SIDE + clamp_to(x0 + i % 34 - 1, SIDE)];
  __syncthreads();
  float v[9];
#pragma unroll
  for (int k = 0; k < 9; k++) v[k] = tile[threadIdx.y + k / 3][threadIdx.x + k % 3];
#pragma unroll
  for (int round = 0; round < 5; round++)
#pragma unroll
    for (int k = 0; k < 8 - round; k++) order(v[k], v[k + 1]);  // the largest that is left goes to the end
  out[(size_t)blockIdx.z * PLANE + (y0 + threadIdx.y) * SIDE + x0 + threadIdx.x] = v[4];
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), planes = images * COLOURS, pixels = images * PLANE;
  float *image = memory<float>(planes * PLANE), *out = memory<float>(planes * PLANE), *matrix = memory<float>(12);
  float2* grid = memory<float2>(pixels);
  std::vector<float> values(planes * PLANE);
  std::vector<float2> places(pixels);
  unsigned random = 11;
  for (float& v : values) v = ((random = random * 1664525u + 1013904223u) >> 8) / 16777216.0f;
  for (int i = 0; i < pixels; i++) {  // slightly turned, enlarged and uneven
    const float x = i % SIDE / 127.5f - 1.0f, y = i / SIDE % SIDE / 127.5f - 1.0f;
    places[i] = make_float2(0.9f * x + 0.3f * y + values[i] * 0.02f, 0.9f * y - 0.3f * x - values[i] * 0.01f);
  }
  CHECK(cudaMemcpy(image, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(grid, places.data(), places.size() * sizeof(float2), cudaMemcpyHostToDevice));
  measure("rotate", [&] { rotate_nearest<<<dim3(SIDE / 16, SIDE / 16, planes), dim3(16, 16)>>>(image, out, 0.5f); });
  measure("grid sample", [&] { grid_sample<<<pixels / 256, 256>>>(image, grid, out, pixels); });
  measure("bicubic", [&] { enlarge_bicubic<<<planes * PLANE / 128, 128>>>(image, out, planes); });
  measure("recolour", [&] { recolour<<<dim3(PLANE / 256, images), 256>>>(image, matrix, out); });
  measure("bilateral", [&] { bilateral<<<dim3(SIDE / 32, SIDE / 4, planes), dim3(32, 4)>>>(image, out, 0.1f, 5.0f); });
  measure("median", [&] { median<<<dim3(SIDE / 32, SIDE / 8, planes), dim3(32, 8)>>>(image, out); });
}
