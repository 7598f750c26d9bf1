// Products of matrices: naive, through tiles that check their edges, with a few elements a thread, of triangles.
// sizes: 64 1088 (the side)
#include "../micro/micro.h"

__global__ void naive_1d(float* A, float* B, float* C, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n) return;
  int row = i / n, column = i % n;
  C[i] = 0.0f;
  for (int k = 0; k < n; k++) C[i] += A[row * n + k] * B[k * n + column];
}

// C = A B^T: both are read along their rows.
__global__ void naive_b_transposed(float* A, float* B, float* C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && column < n) {
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += A[row * n + k] * B[column * n + k];
    C[row * n + column] = sum;
  }
}

__global__ void tile_16(float* A, float* B, float* C, int n) {
  __shared__ float a[16][16];
  __shared__ float b[16][16];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  float sum = 0.0f;
  for (int t = 0; t < (n + 15) / 16; t++) {
    if (row < n && t * 16 + tx < n)
      a[ty][tx] = A[row * n + t * 16 + tx];
    else
      a[ty][tx] = 0.0f;
    if (column < n && t * 16 + ty < n)
      b[ty][tx] = B[(t * 16 + ty) * n + column];
    else
      b[ty][tx] = 0.0f;
    __syncthreads();
    for (int k = 0; k < 16; k++) sum += a[ty][k] * b[k][tx];
    __syncthreads();
  }
  if (row < n && column < n) C[row * n + column] = sum;
}

// C = A^T B, in tiles of 32.
__global__ void tile_32_a_transposed(const float* A, const float* B, float* C, int n) {
  __shared__ float a[32][32], b[32][32];
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0.0f;
  for (int t = 0; t < n; t += 32) {
    a[threadIdx.y][threadIdx.x] = A[(t + threadIdx.y) * n + blockIdx.y * 32 + threadIdx.x];
    b[threadIdx.y][threadIdx.x] = B[(t + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 32; k++) sum += a[k][threadIdx.y] * b[k][threadIdx.x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}

// A thread makes 8 elements of a column, a block 64 x 64.
__global__ void eight_of_a_column(const float* A, const float* B, float* C, int n) {
  __shared__ float a[64][8], b[8][64];
  int tid = threadIdx.x, column = tid % 64, first_row = tid / 64 * 8;
  A += blockIdx.y * 64 * n;
  B += blockIdx.x * 64;
  C += blockIdx.y * 64 * n + blockIdx.x * 64;
  float sum[8] = {0.0f};
  for (int t = 0; t < n; t += 8) {
    a[tid / 8][tid % 8] = A[tid / 8 * n + t + tid % 8];
    b[tid / 64][tid % 64] = B[(t + tid / 64) * n + tid % 64];
    __syncthreads();
    for (int k = 0; k < 8; k++) {
      float v = b[k][column];
      for (int r = 0; r < 8; r++) sum[r] += a[first_row + r][k] * v;
    }
    __syncthreads();
  }
  for (int r = 0; r < 8; r++) C[(first_row + r) * n + column] = sum[r];
}

// A thread makes 2 x 2 elements, without shared memory.
__global__ void two_by_two(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int n) {
  int row = 2 * (blockIdx.y * blockDim.y + threadIdx.y), column = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= n || column >= n) return;
  float c00 = 0.0f, c01 = 0.0f, c10 = 0.0f, c11 = 0.0f;
  for (int k = 0; k < n; k++) {
    float a0 = A[row * n + k], a1 = A[(row + 1) * n + k];
    float b0 = B[k * n + column], b1 = B[k * n + column + 1];
    c00 += a0 * b0;
    c01 += a0 * b1;
    c10 += a1 * b0;
    c11 += a1 * b1;
  }
  C[row * n + column] = c00;
  C[row * n + column + 1] = c01;
  C[(row + 1) * n + column] = c10;
  C[(row + 1) * n + column + 1] = c11;
}

// Both matrices are lower triangles, and so is the product.
__global__ void triangles(float* A, float* B, float* C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= n) return;
  if (column > row) {
    C[row * n + column] = 0.0f;
  } else {
    float sum = 0.0f;
    for (int k = column; k <= row; k++) sum += A[row * n + k] * B[k * n + column];
    C[row * n + column] = sum;
  }
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64);
  float *A = memory<float>(n * n), *B = memory<float>(n * n), *C = memory<float>(n * n);
  const dim3 by_16(n / 16, n / 16), by_32(n / 32, n / 32), by_64(n / 64, n / 64);
  measure("naive, sum in memory", [&] { naive_1d<<<n * n / 256, 256>>>(A, B, C, n); });
  measure("naive, B transposed", [&] { naive_b_transposed<<<by_16, dim3(16, 16)>>>(A, B, C, n); });
  measure("tiles of 16, edges", [&] { tile_16<<<by_16, dim3(16, 16)>>>(A, B, C, n); });
  measure("tiles of 32, A transposed", [&] { tile_32_a_transposed<<<by_32, dim3(32, 32)>>>(A, B, C, n); });
  measure("8 of a column", [&] { eight_of_a_column<<<by_64, 512>>>(A, B, C, n); });
  measure("2 x 2 a thread", [&] { two_by_two<<<dim3(n / 64, n / 16), dim3(32, 8)>>>(A, B, C, n); });
  measure("triangles", [&] { triangles<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(A, B, C, n); });
}
