// title: Separable convolution, rows then columns, each thread several results
// features: constant_memory, shared_memory, templates
// args: 128 64

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace conv {
constexpr int RADIUS = 8;
constexpr int LENGTH = 2 * RADIUS + 1;
constexpr int ROWS_X = 16, ROWS_Y = 4, ROWS_STEPS = 4, ROWS_HALO = 1;
constexpr int COLS_X = 16, COLS_Y = 8, COLS_STEPS = 4, COLS_HALO = 1;

__constant__ float kernel[LENGTH];

__global__ void rows(float* __restrict__ dst, const float* __restrict__ src, int w, int pitch) {
  __shared__ float line[ROWS_Y][(ROWS_STEPS + 2 * ROWS_HALO) * ROWS_X];
  const int baseX = (int)(blockIdx.x * ROWS_STEPS - ROWS_HALO) * ROWS_X + threadIdx.x;
  const int baseY = blockIdx.y * ROWS_Y + threadIdx.y;
  src += baseY * pitch + baseX;
  dst += baseY * pitch + baseX;
#pragma unroll
  for (int i = 0; i < ROWS_STEPS + 2 * ROWS_HALO; i++) {
    const int x = baseX + i * ROWS_X;
    line[threadIdx.y][threadIdx.x + i * ROWS_X] = x >= 0 && x < w ? src[i * ROWS_X] : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = ROWS_HALO; i < ROWS_HALO + ROWS_STEPS; i++) {
    float sum = 0;
#pragma unroll
    for (int j = -RADIUS; j <= RADIUS; j++) sum += kernel[RADIUS - j] * line[threadIdx.y][threadIdx.x + i * ROWS_X + j];
    dst[i * ROWS_X] = sum;
  }
}

__global__ void columns(float* __restrict__ dst, const float* __restrict__ src, int h, int pitch) {
  __shared__ float col[COLS_X][(COLS_STEPS + 2 * COLS_HALO) * COLS_Y + 1];
  const int baseX = blockIdx.x * COLS_X + threadIdx.x;
  const int baseY = (int)(blockIdx.y * COLS_STEPS - COLS_HALO) * COLS_Y + threadIdx.y;
  src += baseY * pitch + baseX;
  dst += baseY * pitch + baseX;
#pragma unroll
  for (int i = 0; i < COLS_STEPS + 2 * COLS_HALO; i++) {
    const int y = baseY + i * COLS_Y;
    col[threadIdx.x][threadIdx.y + i * COLS_Y] = y >= 0 && y < h ? src[i * COLS_Y * pitch] : 0;
  }
  __syncthreads();
#pragma unroll
  for (int i = COLS_HALO; i < COLS_HALO + COLS_STEPS; i++) {
    float sum = 0;
#pragma unroll
    for (int j = -RADIUS; j <= RADIUS; j++) sum += kernel[RADIUS - j] * col[threadIdx.x][threadIdx.y + i * COLS_Y + j];
    dst[i * COLS_Y * pitch] = sum;
  }
}
}  // namespace conv

#define CHECK(call)                                                                            \
  do {                                                                                         \
    auto status = (call);                                                                      \
    if (status != cudaSuccess) {                                                               \
      std::fprintf(stderr, "%s (line %d): %s\n", #call, __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                                            \
    }                                                                                          \
  } while (false)

int main(int argc, char** argv) {
  using namespace conv;
  const int w = argc > 1 ? std::atoi(argv[1]) : 128, h = argc > 2 ? std::atoi(argv[2]) : 64;
  static_assert(ROWS_X * ROWS_HALO >= RADIUS && COLS_Y * COLS_HALO >= RADIUS, "the halo must hold the radius");
  if (w % (ROWS_X * ROWS_STEPS) || h % (COLS_Y * COLS_STEPS) || h % ROWS_Y) {
    std::puts("The width must be a multiple of 64, the height of 32.");
    return 1;
  }
  std::vector<float> weights(LENGTH), image(w * h), got(w * h);
  for (int i = 0; i < LENGTH; i++) weights[i] = (float)(1 + i % 5) / 45;
  unsigned state = 7;
  for (auto& v : image) v = (float)((state = state * 1664525u + 1013904223u) >> 24) / 16;

  float *d_in, *d_mid, *d_out;
  const size_t bytes = image.size() * sizeof(float);
  CHECK(cudaMalloc(&d_in, bytes));
  CHECK(cudaMalloc(&d_mid, bytes));
  CHECK(cudaMalloc(&d_out, bytes));
  CHECK(cudaMemcpyToSymbol(kernel, weights.data(), LENGTH * sizeof(float)));
  CHECK(cudaMemcpy(d_in, image.data(), bytes, cudaMemcpyHostToDevice));
  rows<<<dim3(w / (ROWS_STEPS * ROWS_X), h / ROWS_Y), dim3(ROWS_X, ROWS_Y)>>>(d_mid, d_in, w, w);
  CHECK(cudaGetLastError());
  columns<<<dim3(w / COLS_X, h / (COLS_STEPS * COLS_Y)), dim3(COLS_X, COLS_Y)>>>(d_out, d_mid, h, w);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(got.data(), d_out, bytes, cudaMemcpyDeviceToHost));

  std::vector<double> mid(w * h);
  double err = 0, norm = 0, sum = 0;
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++)
      for (int k = -RADIUS; k <= RADIUS; k++)
        if (x + k >= 0 && x + k < w) mid[y * w + x] += (double)image[y * w + x + k] * weights[RADIUS - k];
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      double want = 0;
      for (int k = -RADIUS; k <= RADIUS; k++)
        if (y + k >= 0 && y + k < h) want += mid[(y + k) * w + x] * weights[RADIUS - k];
      err += (want - got[y * w + x]) * (want - got[y * w + x]);
      norm += want * want;
      sum += got[y * w + x];
    }
  std::printf("mean %.2f\n", sum / (w * h));
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_mid));
  CHECK(cudaFree(d_out));
  bool ok = std::sqrt(err / norm) < 1e-6;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
