// Products of matrices as courses teach them: naive, tiles of several sizes, edges, A transposed, coarser threads.
// sizes: 64 1024 (the side)
#include "../micro/micro.h"

// C is m x n, A is m x k, B is k x n. The x index of a thread is the row, so that the lanes go down a column.
__global__ void matmul_swapped(float* A, float* B, float* C, int m, int n, int k) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < m && col < n) {
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum += A[row * k + i] * B[i * n + col];
    C[row * n + col] = sum;
  }
}

// Square tiles; the width is a multiple of the tile's.
template <int TILE>
__global__ void matmul_tiled(const float* M, const float* N, float* P, int width) {
  __shared__ float Mds[TILE][TILE];
  __shared__ float Nds[TILE][TILE];
  int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int row = by * TILE + ty, col = bx * TILE + tx;
  float value = 0;
  for (int ph = 0; ph < width / TILE; ++ph) {
    Mds[ty][tx] = M[row * width + ph * TILE + tx];
    Nds[ty][tx] = N[(ph * TILE + ty) * width + col];
    __syncthreads();
    for (int k = 0; k < TILE; ++k) value += Mds[ty][k] * Nds[k][tx];
    __syncthreads();
  }
  P[row * width + col] = value;
}

// The width of the tiles is known only when the kernel is launched.
__global__ void matmul_dynamic_tile(const float* A, const float* B, float* C, int m, int n, int k, int tile) {
  extern __shared__ float shared[];
  float* As = shared;
  float* Bs = shared + tile * tile;
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * tile + ty, col = blockIdx.x * tile + tx;
  float sum = 0.0f;
  for (int t = 0; t < (k + tile - 1) / tile; t++) {
    As[ty * tile + tx] = row < m && t * tile + tx < k ? A[row * k + t * tile + tx] : 0.0f;
    Bs[ty * tile + tx] = t * tile + ty < k && col < n ? B[(t * tile + ty) * n + col] : 0.0f;
    __syncthreads();
    for (int i = 0; i < tile; i++) sum += As[ty * tile + i] * Bs[i * tile + tx];
    __syncthreads();
  }
  if (row < m && col < n) C[row * n + col] = sum;
}

// Eight rows and 32 columns a block, so that the two tiles differ in shape.
__global__ void matmul_rectangular_tiles(const float* A, const float* B, float* C, int m, int n, int k) {
  __shared__ float As[8][32], Bs[32][32];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * 8 + ty, col = blockIdx.x * 32 + tx;
  float sum = 0.0f;
  for (int first = 0; first < k; first += 32) {
    As[ty][tx] = row < m && first + tx < k ? A[row * k + first + tx] : 0.0f;
    for (int j = ty; j < 32; j += 8) Bs[j][tx] = first + j < k && col < n ? B[(first + j) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; i++) sum += As[ty][i] * Bs[i][tx];
    __syncthreads();
  }
  if (row < m && col < n) C[row * n + col] = sum;
}

// A is stored as k x m.
__global__ void matmul_a_transposed(const float* __restrict__ At, const float* __restrict__ B, float* __restrict__ C,
                                    int m, int n, int k) {
  int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= n || row >= m) return;
  float sum = 0.0f;
  for (int i = 0; i < k; i++) sum += At[i * m + row] * B[i * n + col];
  C[row * n + col] = sum;
}

// A block computes four tiles next to each other from the same tile of M.
__global__ void matmul_coarsened(float* M, float* N, float* P, int width) {
  constexpr int TILE = 32, COARSE = 4;
  __shared__ float Mds[TILE][TILE], Nds[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, colStart = blockIdx.x * TILE * COARSE + tx;
  float value[COARSE];
  for (int c = 0; c < COARSE; ++c) value[c] = 0.0f;
  for (int ph = 0; ph < width / TILE; ++ph) {
    Mds[ty][tx] = M[row * width + ph * TILE + tx];
    for (int c = 0; c < COARSE; ++c) {
      int col = colStart + c * TILE;
      Nds[ty][tx] = col < width ? N[(ph * TILE + ty) * width + col] : 0.0f;
      __syncthreads();
      for (int k = 0; k < TILE; ++k) value[c] += Mds[ty][k] * Nds[k][tx];
      __syncthreads();
    }
  }
  for (int c = 0; c < COARSE; ++c)
    if (colStart + c * TILE < width) P[row * width + colStart + c * TILE] = value[c];
}

// A thread computes four neighbours of a row; no shared memory.
__global__ void matmul_float4(const float* __restrict__ A, const float4* __restrict__ B, float4* __restrict__ C,
                              int width) {
  const int quads = width / 4;
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (col >= quads || row >= width) return;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int k = 0; k < width; k++) {
    const float a = A[row * width + k];
    const float4 b = B[k * quads + col];
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
  }
  C[row * quads + col] = sum;
}

int main(int argc, char** argv) {
  const int side = size_of_run(argc, argv, 64), n = side * side;
  float *A = memory<float>(n), *B = memory<float>(n), *C = memory<float>(n);
  std::vector<float> values(n);
  unsigned state = 22;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(A, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(B, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  const int rows = side - 9, columns = side - 20, inner = side - 3;
  auto blocks = [](int elements, int block) { return (elements + block - 1) / block; };
  measure("indices swapped", [&] {
    matmul_swapped<<<dim3(blocks(rows, 16), blocks(columns, 16)), dim3(16, 16)>>>(A, B, C, rows, columns, inner);
  });
  measure("tiles of 8", [&] { matmul_tiled<8><<<dim3(side / 8, side / 8), dim3(8, 8)>>>(A, B, C, side); });
  measure("tiles of 16", [&] { matmul_tiled<16><<<dim3(side / 16, side / 16), dim3(16, 16)>>>(A, B, C, side); });
  measure("tiles of 32, dynamic, edges", [&] {
    dim3 grid(blocks(columns, 32), blocks(rows, 32));
    matmul_dynamic_tile<<<grid, dim3(32, 32), 2 * 32 * 32 * sizeof(float)>>>(A, B, C, rows, columns, inner, 32);
  });
  measure("tiles of 8 x 32", [&] {
    dim3 grid(blocks(columns, 32), blocks(rows, 8));
    matmul_rectangular_tiles<<<grid, dim3(32, 8)>>>(A, B, C, rows, columns, inner);
  });
  measure("A transposed", [&] {
    dim3 grid(blocks(columns, 64), blocks(rows, 4));
    matmul_a_transposed<<<grid, dim3(64, 4)>>>(A, B, C, rows, columns, inner);
  });
  measure("four tiles a block",
          [&] { matmul_coarsened<<<dim3(blocks(side, 128), side / 32), dim3(32, 32)>>>(A, B, C, side); });
  measure("float4 of B", [&] {
    matmul_float4<<<dim3(blocks(side, 64), blocks(side, 16)), dim3(16, 16)>>>(A, (float4*)B, (float4*)C, side);
  });
}
