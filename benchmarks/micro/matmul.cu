// C = A B for square matrices: naive both ways round, through tiles, and with 4 x 4 elements a thread.
// sizes: 64 2048 (the side)
#include "micro.h"

constexpr int TILE = 16;

__global__ void naive(const float* A, const float* B, float* C, int n) {
  const int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += A[row * n + k] * B[k * n + column];
  C[row * n + column] = sum;
}

// The threads of a warp go down a column.
__global__ void naive_swapped(const float* A, const float* B, float* C, int n) {
  const int row = blockIdx.x * TILE + threadIdx.x, column = blockIdx.y * TILE + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += A[row * n + k] * B[k * n + column];
  C[row * n + column] = sum;
}

template <int SIDE>
__global__ void tiled(const float* A, const float* B, float* C, int n) {
  __shared__ float a[SIDE][SIDE], b[SIDE][SIDE];
  const int row = blockIdx.y * SIDE + threadIdx.y, column = blockIdx.x * SIDE + threadIdx.x;
  float sum = 0.0f;
  for (int tile = 0; tile < n; tile += SIDE) {
    a[threadIdx.y][threadIdx.x] = A[row * n + tile + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(tile + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < SIDE; k++) sum += a[threadIdx.y][k] * b[k][threadIdx.x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}

// A block of 16 x 16 threads makes 64 x 64 elements; a thread those that are 16 apart.
__global__ void four_by_four(const float* A, const float* B, float* C, int n) {
  __shared__ float a[TILE][64], b[TILE][64];
  const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * TILE + tx;
  A += blockIdx.y * 64 * n, B += blockIdx.x * 64, C += blockIdx.y * 64 * n + blockIdx.x * 64;
  float sum[4][4] = {};
  for (int tile = 0; tile < n; tile += TILE) {
    for (int i = thread; i < 64 * TILE; i += TILE * TILE) {
      a[i % TILE][i / TILE] = A[i / TILE * n + tile + i % TILE];
      b[i / 64][i % 64] = B[(tile + i / 64) * n + i % 64];
    }
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) sum[r][c] += a[k][ty + 16 * r] * b[k][tx + 16 * c];
    __syncthreads();
  }
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) C[(ty + 16 * r) * n + tx + 16 * c] = sum[r][c];
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64);
  float *A = memory<float>(n * n), *B = memory<float>(n * n), *C = memory<float>(n * n);
  const dim3 grid(n / TILE, n / TILE), block(TILE, TILE);
  measure("naive", [&] { naive<<<grid, block>>>(A, B, C, n); });
  measure("naive, warps along columns", [&] { naive_swapped<<<grid, block>>>(A, B, C, n); });
  measure("tiles of 16", [&] { tiled<16><<<grid, block>>>(A, B, C, n); });
  measure("tiles of 32", [&] { tiled<32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(A, B, C, n); });
  measure("4 x 4 a thread", [&] { four_by_four<<<dim3(n / 64, n / 64), block>>>(A, B, C, n); });
}
