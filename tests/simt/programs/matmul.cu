/*
Matrix product C = A B, row by row in memory, of any size.

    nvcc -std=c++17 -arch=native matmul.cu -o matmul && ./matmul [rows] [inner] [columns]
    python -m simt run matmul.cu [rows] [inner] [columns]

version 1: one thread an element of C: reads a row of A and a column of B from global memory
version 2: a block stages tiles of A and B in shared memory: each element is read once a tile, not once a thread
version 3: each thread computes four elements of a column, and reads the tile of B from registers
Matrices are passed to kernels by value, as a struct. The entries are small whole numbers: every sum is exact.
*/

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(expression)                                                                          \
  do {                                                                                                  \
    const cudaError_t status = (expression);                                                            \
    if (status != cudaSuccess) {                                                                        \
      std::fprintf(stderr, "%s failed at line %d: %s\n", #expression, __LINE__, cudaGetErrorString(status)); \
      std::exit(1);                                                                                     \
    }                                                                                                   \
  } while (false)

struct Matrix {
  int rows, columns;
  float* data;
  __host__ __device__ float& at(int r, int c) { return data[r * columns + c]; }
  __host__ __device__ float at(int r, int c) const { return data[r * columns + c]; }
  size_t bytes() const { return sizeof(float) * rows * columns; }
};

// ---- CPU reference ----

void matmul_cpu(Matrix a, Matrix b, Matrix c) {
  for (int i = 0; i < c.rows; i++)
    for (int j = 0; j < c.columns; j++) {
      float sum = 0;
      for (int k = 0; k < a.columns; k++) sum += a.at(i, k) * b.at(k, j);
      c.at(i, j) = sum;
    }
}

// ---- kernels ----

__global__ void matmul_naive(Matrix a, Matrix b, Matrix c) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= c.rows || column >= c.columns) return;
  float sum = 0;
  for (int k = 0; k < a.columns; k++) sum += a.at(row, k) * b.at(k, column);
  c.at(row, column) = sum;
}

template <int TILE>
__global__ void matmul_tiled(Matrix a, Matrix b, Matrix c) {
  __shared__ float a_tile[TILE][TILE];
  __shared__ float b_tile[TILE][TILE];
  int ty = threadIdx.y, tx = threadIdx.x;
  int row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
  float sum = 0;
  for (int start = 0; start < a.columns; start += TILE) {
    a_tile[ty][tx] = row < a.rows && start + tx < a.columns ? a.at(row, start + tx) : 0;
    b_tile[ty][tx] = start + ty < b.rows && column < b.columns ? b.at(start + ty, column) : 0;
    __syncthreads();
    for (int k = 0; k < TILE; k++) sum += a_tile[ty][k] * b_tile[k][tx];
    __syncthreads();
  }
  if (row < c.rows && column < c.columns) c.at(row, column) = sum;      // only now: every thread must reach the barriers
}

template <int TILE, int EACH>
__global__ void __launch_bounds__(TILE* TILE / EACH) matmul_registers(Matrix a, Matrix b, Matrix c) {
  __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y * EACH;
  int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
  float sums[EACH] = {};
  for (int start = 0; start < a.columns; start += TILE) {
    for (int i = 0; i < EACH; i++) {
      a_tile[ty + i][tx] = row + i < a.rows && start + tx < a.columns ? a.at(row + i, start + tx) : 0;
      b_tile[ty + i][tx] = start + ty + i < b.rows && column < b.columns ? b.at(start + ty + i, column) : 0;
    }
    __syncthreads();
    for (int k = 0; k < TILE; k++) {
      float once = b_tile[k][tx];
#pragma unroll
      for (int i = 0; i < EACH; i++) sums[i] += a_tile[ty + i][k] * once;
    }
    __syncthreads();
  }
  for (int i = 0; i < EACH; i++)
    if (row + i < c.rows && column < c.columns) c.at(row + i, column) = sums[i];
}

// ---- host ----

int main(int argc, char* argv[]) {
  const int m = argc > 1 ? std::atoi(argv[1]) : 100;
  const int k = argc > 2 ? std::atoi(argv[2]) : 130;
  const int n = argc > 3 ? std::atoi(argv[3]) : 75;

  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  std::fprintf(stderr, "on %s, compute capability %d.%d\n", properties.name, properties.major, properties.minor);

  std::vector<float> host_a(m * k), host_b(k * n), host_c(m * n), expected(m * n);
  for (int i = 0; i < m * k; i++) host_a[i] = i * 7 % 13 - 6;
  for (int i = 0; i < k * n; i++) host_b[i] = i * 5 % 11 - 5;
  matmul_cpu({m, k, host_a.data()}, {k, n, host_b.data()}, {m, n, expected.data()});

  Matrix a{m, k, nullptr}, b{k, n, nullptr}, c{m, n, nullptr};
  CUDA_CHECK(cudaMalloc((void**)&a.data, a.bytes()));
  CUDA_CHECK(cudaMalloc((void**)&b.data, b.bytes()));
  CUDA_CHECK(cudaMalloc((void**)&c.data, c.bytes()));
  CUDA_CHECK(cudaMemcpy(a.data, host_a.data(), a.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(b.data, host_b.data(), b.bytes(), cudaMemcpyHostToDevice));

  int failures = 0;
  auto finish = [&](const char* name) {
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpy(host_c.data(), c.data, c.bytes(), cudaMemcpyDeviceToHost));
    double checksum = 0;
    for (int i = 0; i < m * n; i++) checksum += host_c[i] * (i % 17 + 1);
    const bool right = host_c == expected;
    failures += !right;
    std::printf("%dx%d times %dx%d, %-9s %s  checksum %.0f\n", m, k, k, n, name, right ? "ok" : "WRONG", checksum);
    CUDA_CHECK(cudaMemset(c.data, 0, c.bytes()));
  };
  const dim3 grid16((n + 15) / 16, (m + 15) / 16), grid32((n + 31) / 32, (m + 31) / 32);
  matmul_naive<<<grid16, dim3(16, 16)>>>(a, b, c);
  finish("naive");
  matmul_tiled<16><<<grid16, dim3(16, 16)>>>(a, b, c);
  finish("tiled 16");
  matmul_tiled<32><<<grid32, dim3(32, 32)>>>(a, b, c);
  finish("tiled 32");
  matmul_registers<32, 4><<<grid32, dim3(32, 8)>>>(a, b, c);
  finish("registers");

  CUDA_CHECK(cudaFree(a.data));
  CUDA_CHECK(cudaFree(b.data));
  CUDA_CHECK(cudaFree(c.data));
  return failures;
}
