// A square matrix transposed four ways: rows read, columns read, through a tile in shared memory, through a padded tile.
// sizes: 7 13 (log2 of the side)
#include "micro.h"

constexpr int TILE = 32, ROWS = 8;  // a block of TILE x ROWS threads moves a tile

__global__ void rows_read(const float* in, float* out, int side) {
  const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) out[(size_t)x * side + y + j] = in[(size_t)(y + j) * side + x];
}

__global__ void columns_read(const float* in, float* out, int side) {
  const int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) out[(size_t)(y + j) * side + x] = in[(size_t)x * side + y + j];
}

template <int PAD>
__global__ void tiled(const float* in, float* out, int side) {
  __shared__ float tile[TILE][TILE + PAD];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = in[(size_t)(y + j) * side + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  for (int j = 0; j < TILE; j += ROWS) out[(size_t)(y + j) * side + x] = tile[threadIdx.x][threadIdx.y + j];
}

int main(int argc, char** argv) {
  const int side = 1 << size_of_run(argc, argv, 7);
  const dim3 blocks(side / TILE, side / TILE), threads(TILE, ROWS);
  float *in = memory<float>((size_t)side * side), *out = memory<float>((size_t)side * side);
  measure("rows read", [&] { rows_read<<<blocks, threads>>>(in, out, side); });
  measure("columns read", [&] { columns_read<<<blocks, threads>>>(in, out, side); });
  measure("tile", [&] { tiled<0><<<blocks, threads>>>(in, out, side); });
  measure("padded tile", [&] { tiled<1><<<blocks, threads>>>(in, out, side); });
}
