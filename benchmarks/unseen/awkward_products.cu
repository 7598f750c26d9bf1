// Products of matrices that are long, thin, symmetric, triangular, many, of halves or of doubles.
// sizes: 64 1024 (the side)
#include <cuda_fp16.h>

#include "../micro/micro.h"

constexpr int THIN = 32, SMALL = 48;

// A long thin matrix times 32 x 16: a thread a row, its 16 sums in registers.
__global__ void tall_and_thin(const float* a, const float* b, float* c, int rows) {
  __shared__ float small[THIN * 16];
  for (int i = threadIdx.x; i < THIN * 16; i += blockDim.x) small[i] = b[i];
  __syncthreads();
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sums[16] = {};
  for (int k = 0; k < THIN; k++) {
    float v = a[row * THIN + k];
#pragma unroll
    for (int j = 0; j < 16; j++) sums[j] += v * small[k * 16 + j];
  }
#pragma unroll
  for (int j = 0; j < 16; j++) c[row * 16 + j] = sums[j];
}

// 32 x 32 results of very long sums: each block sums a part of the length and adds it with atomics.
__global__ void split_length(const float* a, const float* b, float* c, int length, int part) {
  __shared__ float left[32][33], right[32][33];
  int tx = threadIdx.x, ty = threadIdx.y, first = blockIdx.x * part;
  float sum = 0.0f;
  for (int k = first; k < first + part; k += 32) {
    left[ty][tx] = a[ty * length + k + tx];
    right[ty][tx] = b[(k + ty) * 32 + tx];
    __syncthreads();
    for (int i = 0; i < 32; i++) sum += left[ty][i] * right[i][tx];
    __syncthreads();
  }
  atomicAdd(&c[ty * 32 + tx], sum);
}

// Only the upper half of the first matrix is there: the thread looks on the right side of the diagonal.
__global__ void symmetric_product(float* a, float* b, float* c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) {
    float v = row <= k ? a[row * n + k] : a[k * n + row];
    sum += v * b[k * n + column];
  }
  c[row * n + column] = sum;
}

// Both are lower triangles, and so is the product: the sums have every length.
__global__ void lower_times_lower(const float* a, const float* b, float* c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (int k = column; k <= row; k++) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = column <= row ? sum : 0.0f;
}

// Many products of 48 x 48: a block each, both matrices in shared memory, 3 x 3 results a thread.
__global__ void many_of_48(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c) {
  __shared__ float left[SMALL * SMALL], right[SMALL * SMALL];
  const int first = blockIdx.x * SMALL * SMALL, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  for (int i = threadIdx.x; i < SMALL * SMALL; i += 256) {
    left[i] = a[first + i];
    right[i] = b[first + i];
  }
  __syncthreads();
  float sums[3][3] = {};
#pragma unroll 4
  for (int k = 0; k < SMALL; k++) {
    float u[3], v[3];
#pragma unroll
    for (int i = 0; i < 3; i++) {
      u[i] = left[(ty + 16 * i) * SMALL + k];
      v[i] = right[k * SMALL + tx + 16 * i];
    }
#pragma unroll
    for (int i = 0; i < 3; i++)
#pragma unroll
      for (int j = 0; j < 3; j++) sums[i][j] += u[i] * v[j];
  }
#pragma unroll
  for (int i = 0; i < 3; i++)
#pragma unroll
    for (int j = 0; j < 3; j++) c[first + (ty + 16 * i) * SMALL + tx + 16 * j] = sums[i][j];
}

// Halves, eight at a time from a row of each: the second matrix is transposed.
__global__ void rows_of_halves(const uint4* a, const uint4* b, __half* c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  __half2 sum = __float2half2_rn(0.0f);
  for (int k = 0; k < n / 8; k++) {
    uint4 u = a[row * (n / 8) + k], v = b[column * (n / 8) + k];
    const __half2* left = reinterpret_cast<const __half2*>(&u);
    const __half2* right = reinterpret_cast<const __half2*>(&v);
#pragma unroll
    for (int i = 0; i < 4; i++) sum = __hfma2(left[i], right[i], sum);
  }
  c[row * n + column] = __hadd(__low2half(sum), __high2half(sum));
}

// Doubles through tiles of 16 x 16.
__global__ void tiles_of_doubles(const double* a, const double* b, double* c, int n) {
  __shared__ double left[16][16], right[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
  double sum = 0.0;
  for (int first = 0; first < n; first += 16) {
    left[ty][tx] = a[row * n + first + tx];
    right[ty][tx] = b[(first + ty) * n + column];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; k++) sum += left[ty][k] * right[k][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

// Every element of a matrix of 32 x 32 times the whole of another.
__global__ void kronecker(const float* a, const float* b, float* c, int m, int total) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    int row = i / (32 * m), column = i % (32 * m);
    c[i] = a[row / m * 32 + column / m] * b[row % m * m + column % m];
  }
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 64), rows = 256 * n, length = 128 * n, many = 4 * n;
  const size_t most = std::max((size_t)16 * n * n, (size_t)many * SMALL * SMALL);
  float *a = memory<float>(most), *b = memory<float>(most), *c = memory<float>(most);
  const dim3 sixteen(16, 16), by_16(n / 16, n / 16), flat(32, 8), by_flat(n / 32, n / 8);
  measure("tall and thin", [&] { tall_and_thin<<<rows / 256, 256>>>(a, b, c, rows); });
  measure("length split", [&] { split_length<<<length / 512, dim3(32, 32)>>>(a, b, c, length, 512); });
  measure("symmetric", [&] { symmetric_product<<<by_16, sixteen>>>(a, b, c, n); });
  measure("lower triangles", [&] { lower_times_lower<<<by_flat, flat>>>(a, b, c, n); });
  measure("many of 48 x 48", [&] { many_of_48<<<many, 256>>>(a, b, c); });
  measure("halves", [&] { rows_of_halves<<<by_flat, flat>>>((uint4*)a, (uint4*)b, (__half*)c, n); });
  measure("doubles", [&] { tiles_of_doubles<<<by_16, sixteen>>>((double*)a, (double*)b, (double*)c, n); });
  const int m = n / 8, total = 32 * m * 32 * m;
  measure("Kronecker", [&] { kronecker<<<528, 256>>>(a, b, c, m, total); });
}
