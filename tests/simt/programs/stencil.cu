/*
Stencils: every element of the result is a sum over neighbours of the input.

    nvcc -std=c++17 -arch=native stencil.cu -o stencil && ./stencil
    python -m simt run stencil.cu

1D, radius 3, weights in constant memory
  version 1: straight from global memory: each element is read seven times
  version 2: a block's elements and a halo of three on each side in shared memory
2D, five points: heat spreading over a plate with fixed edges, two buffers that change places after every step
  version 1: straight from global memory
  version 2: a tile with a halo of one
All values are multiples of powers of two, so that every order of additions gives the same result.
*/

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t result = (call);                                                                        \
    if (result != cudaSuccess) {                                                                        \
      fprintf(stderr, "CUDA error at %s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(result));     \
      exit(1);                                                                                          \
    }                                                                                                   \
  } while (0)

constexpr int RADIUS = 3;
constexpr int BLOCK = 128;      // of the 1D kernels
constexpr int TILE = 16;        // of the 2D kernels

__constant__ float weights[2 * RADIUS + 1];

// ---- CPU references ----

void stencil1d_cpu(const float* in, float* out, const float* w, int n) {
  for (int i = 0; i < n; i++) {
    out[i] = 0;
    for (int d = -RADIUS; d <= RADIUS; d++)
      if (i + d >= 0 && i + d < n) out[i] += w[d + RADIUS] * in[i + d];
  }
}

void heat_cpu(const float* in, float* out, int height, int width) {
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      int i = y * width + x;
      bool edge = y == 0 || x == 0 || y == height - 1 || x == width - 1;
      out[i] = edge ? in[i] : 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
    }
}

// ---- kernels ----

__global__ void stencil1d_global(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int d = -RADIUS; d <= RADIUS; d++)
    if (i + d >= 0 && i + d < n) sum += weights[d + RADIUS] * in[i + d];
  out[i] = sum;
}

__global__ void stencil1d_shared(const float* in, float* out, int n) {
  __shared__ float tile[BLOCK + 2 * RADIUS];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  int t = threadIdx.x + RADIUS;
  tile[t] = i < n ? in[i] : 0;
  if (threadIdx.x < RADIUS) {      // the first threads fetch the halo of both sides
    tile[t - RADIUS] = i >= RADIUS ? in[i - RADIUS] : 0;
    tile[t + BLOCK] = i + BLOCK < n ? in[i + BLOCK] : 0;
  }
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int d = -RADIUS; d <= RADIUS; d++) sum += weights[d + RADIUS] * tile[t + d];
  if (i < n) out[i] = sum;
}

__global__ void heat_global(const float* in, float* out, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int i = y * width + x;
  if (x == 0 || y == 0 || x == width - 1 || y == height - 1)
    out[i] = in[i];
  else
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

__global__ void heat_tiled(const float* in, float* out, int height, int width) {
  __shared__ float tile[TILE + 2][TILE + 2];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  auto at = [&](int row, int column) {
    bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? in[row * width + column] : 0.0f;
  };
  tile[ty][tx] = at(y, x);
  if (tx == 1) tile[ty][0] = at(y, x - 1);
  if (tx == TILE) tile[ty][TILE + 1] = at(y, x + 1);
  if (ty == 1) tile[0][tx] = at(y - 1, x);
  if (ty == TILE) tile[TILE + 1][tx] = at(y + 1, x);
  __syncthreads();
  if (x >= width || y >= height) return;
  bool edge = x == 0 || y == 0 || x == width - 1 || y == height - 1;
  out[y * width + x] =
      edge ? tile[ty][tx] : 0.25f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx]);
}

// ---- host ----

bool report(const char* name, const std::vector<float>& got, const std::vector<float>& expected) {
  double checksum = 0;
  for (size_t i = 0; i < got.size(); i++) checksum += got[i] * (i % 7 + 1);
  bool ok = got == expected;
  printf("%-12s %s  checksum %.4f\n", name, ok ? "ok" : "WRONG", checksum);
  return ok;
}

int main() {
  bool ok = true;

  const int n = 50001;
  const float w[2 * RADIUS + 1] = {0.125f, -0.5f, 1, 2, 1, -0.5f, 0.125f};
  std::vector<float> in(n), out(n), expected(n);
  for (int i = 0; i < n; i++) in[i] = i * 37 % 256;
  stencil1d_cpu(in.data(), expected.data(), w, n);
  CHECK(cudaMemcpyToSymbol(weights, w, sizeof(w)));
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  const char* names1d[] = {"1D global", "1D shared"};
  for (int version = 0; version < 2; version++) {
    if (version == 0) stencil1d_global<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(d_in, d_out, n);
    else stencil1d_shared<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(d_in, d_out, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
    ok &= report(names1d[version], out, expected);
  }
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));

  const int height = 100, width = 130, steps = 8;      // after 8 steps a value has 8 + 2 · 8 bits: still exact
  const size_t bytes = height * width * sizeof(float);
  std::vector<float> plate(height * width), next(height * width);
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) plate[y * width + x] = y == 0 ? 100 : x * y % 64;
  const std::vector<float> start = plate;
  for (int step = 0; step < steps; step++) {
    heat_cpu(plate.data(), next.data(), height, width);
    plate.swap(next);
  }
  CHECK(cudaMalloc(&d_in, bytes));
  CHECK(cudaMalloc(&d_out, bytes));
  const char* names2d[] = {"2D global", "2D tiled"};
  for (int version = 0; version < 2; version++) {
    CHECK(cudaMemcpy(d_in, start.data(), bytes, cudaMemcpyHostToDevice));
    dim3 block(TILE, TILE), grid((width + TILE - 1) / TILE, (height + TILE - 1) / TILE);
    for (int step = 0; step < steps; step++) {
      if (version == 0) heat_global<<<grid, block>>>(d_in, d_out, height, width);
      else heat_tiled<<<grid, block>>>(d_in, d_out, height, width);
      CHECK(cudaGetLastError());
      std::swap(d_in, d_out);
    }
    CHECK(cudaMemcpy(next.data(), d_in, bytes, cudaMemcpyDeviceToHost));
    ok &= report(names2d[version], next, plate);
  }
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return ok ? 0 : 1;
}
