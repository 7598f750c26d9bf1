// Products of matrices that keep a tile of the result in each thread's registers, and others that do not but should.
// sizes: 128 1536 (rows and columns)
#include "../micro/micro.h"

// 64 x 64 results a block, 4 x 4 a thread, 16 columns of a at a time.
__global__ void tile_4x4(float* a, float* b, float* c, int n) {
  __shared__ float tile_a[64][16];
  __shared__ float tile_b[16][64];
  int tx = threadIdx.x, ty = threadIdx.y, tid = ty * 16 + tx;
  int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sums[4][4] = {};
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = tid; i < 64 * 16; i += 256) {
      tile_a[i / 16][i % 16] = a[(row + i / 16) * n + k0 + i % 16];
      tile_b[i / 64][i % 64] = b[(k0 + i / 64) * n + column + i % 64];
    }
    __syncthreads();
    for (int k = 0; k < 16; k++)
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sums[i][j] += tile_a[ty * 4 + i][k] * tile_b[k][tx * 4 + j];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) c[(row + ty * 4 + i) * n + column + tx * 4 + j] = sums[i][j];
}

// 128 x 128 results a block, 8 x 8 a thread, four elements a load; a's tile lies transposed.
__global__ void __launch_bounds__(256)
    tile_8x8(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  __shared__ float tile_a[8][128];
  __shared__ float tile_b[8][128];
  const int tid = threadIdx.x, ty = tid / 16, tx = tid % 16;
  a += (size_t)blockIdx.y * 128 * n;
  b += blockIdx.x * 128;
  c += (size_t)blockIdx.y * 128 * n + blockIdx.x * 128;
  float sums[8][8] = {};
  for (int k0 = 0; k0 < n; k0 += 8) {
    const float4 from_a = *(const float4*)&a[(tid / 2) * n + k0 + tid % 2 * 4];
    const float4 from_b = *(const float4*)&b[(k0 + tid / 32) * n + tid % 32 * 4];
    tile_a[tid % 2 * 4 + 0][tid / 2] = from_a.x;
    tile_a[tid % 2 * 4 + 1][tid / 2] = from_a.y;
    tile_a[tid % 2 * 4 + 2][tid / 2] = from_a.z;
    tile_a[tid % 2 * 4 + 3][tid / 2] = from_a.w;
    *(float4*)&tile_b[tid / 32][tid % 32 * 4] = from_b;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; k++) {
      float left[8], right[8];
      *(float4*)left = *(float4*)&tile_a[k][ty * 8];
      *(float4*)(left + 4) = *(float4*)&tile_a[k][ty * 8 + 4];
      *(float4*)right = *(float4*)&tile_b[k][tx * 8];
      *(float4*)(right + 4) = *(float4*)&tile_b[k][tx * 8 + 4];
#pragma unroll
      for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sums[i][j] += left[i] * right[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j += 4)
      *(float4*)&c[(ty * 8 + i) * n + tx * 8 + j] =
          make_float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]);
}

// 64 x 64 results a block, eight of a column a thread.
__global__ void column_of_8(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[64 * 8];
  __shared__ float tile_b[8 * 64];
  int column = threadIdx.x % 64, first = threadIdx.x / 64 * 8;
  a += blockIdx.y * 64 * n;
  b += blockIdx.x * 64;
  c += blockIdx.y * 64 * n + blockIdx.x * 64;
  float sums[8] = {0.0f};
  for (int k0 = 0; k0 < n; k0 += 8) {
    tile_a[threadIdx.x] = a[threadIdx.x / 8 * n + k0 + threadIdx.x % 8];
    tile_b[threadIdx.x] = b[(k0 + threadIdx.x / 64) * n + threadIdx.x % 64];
    __syncthreads();
    for (int k = 0; k < 8; ++k) {
      float right = tile_b[k * 64 + column];
      for (int i = 0; i < 8; ++i) sums[i] += tile_a[(first + i) * 8 + k] * right;
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) c[(first + i) * n + column] = sums[i];
}

// a times b transposed, without a tile: each thread goes along two rows.
__global__ void rows_with_rows(float* a, float* b, float* c, int rows, int n) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= rows || j >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < n; k++) sum += a[i * n + k] * b[j * n + k];
  c[i * n + j] = sum;
}

// The products of all pairs of 64 columns: a block takes 128 rows and adds its sums to those of the others.
__global__ void gram(const float* __restrict__ a, float* __restrict__ c) {
  __shared__ float tile[32][64];
  const int tx = threadIdx.x, ty = threadIdx.y;
  float sums[4][4] = {};
  for (int part = 0; part < 4; part++) {
    const float* from = a + (size_t)(blockIdx.x * 4 + part) * 32 * 64;
    for (int i = ty * 16 + tx; i < 32 * 64; i += 256) tile[i / 64][i % 64] = from[i];
    __syncthreads();
    for (int r = 0; r < 32; r++)
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sums[i][j] += tile[r][ty + 16 * i] * tile[r][tx + 16 * j];
    __syncthreads();
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) atomicAdd(&c[(ty + 16 * i) * 64 + tx + 16 * j], sums[i][j]);
}

// Many products of 48 x 64 and 64 x 40 matrices, a thread an element.
__global__ void batched(float* a, float* b, float* c, int rows, int inner, int columns) {
  int j = threadIdx.x, i = blockIdx.x * blockDim.y + threadIdx.y, matrix = blockIdx.y;
  if (i >= rows || j >= columns) return;
  float sum = 0.0f;
  for (int k = 0; k < inner; k++) sum += a[(matrix * rows + i) * inner + k] * b[(matrix * inner + k) * columns + j];
  c[(matrix * rows + i) * columns + j] = sum;
}

// In doubles: 32 x 32 results a block, two a thread.
__global__ void doubles(const double* a, const double* b, double* c, int n) {
  __shared__ double tile_a[32][33], tile_b[32][33];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 32 + ty, column = blockIdx.x * 32 + tx;
  double upper = 0, lower = 0;
  for (int k0 = 0; k0 < n; k0 += 32) {
    tile_a[ty][tx] = a[row * n + k0 + tx];
    tile_a[ty + 16][tx] = a[(row + 16) * n + k0 + tx];
    tile_b[ty][tx] = b[(k0 + ty) * n + column];
    tile_b[ty + 16][tx] = b[(k0 + ty + 16) * n + column];
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 32; k++) {
      upper += tile_a[ty][k] * tile_b[k][tx];
      lower += tile_a[ty + 16][k] * tile_b[k][tx];
    }
    __syncthreads();
  }
  c[row * n + column] = upper;
  c[(row + 16) * n + column] = lower;
}

int main(int argc, char** argv) {
  const int n = size_of_run(argc, argv, 128), tall = n * 64, matrices = n;
  float *a = memory<float>((size_t)tall * 64), *b = memory<float>((size_t)tall * 64);
  float* c = memory<float>((size_t)tall * 64);
  measure("4 x 4 a thread", [&] { tile_4x4<<<dim3(n / 64, n / 64), dim3(16, 16)>>>(a, b, c, n); });
  measure("8 x 8 a thread", [&] { tile_8x8<<<dim3(n / 128, n / 128), 256>>>(a, b, c, n); });
  measure("8 of a column a thread", [&] { column_of_8<<<dim3(n / 64, n / 64), 512>>>(a, b, c, n); });
  measure("rows with rows", [&] { rows_with_rows<<<dim3(n / 32, n / 64), dim3(32, 8)>>>(a, b, c, n / 8, n); });
  measure("gram", [&] { gram<<<tall / 128, dim3(16, 16)>>>(a, c); });
  measure("batched", [&] { batched<<<dim3(8, matrices), dim3(40, 6)>>>(a, b, c, 48, 64, 40); });
  measure("doubles",
          [&] { doubles<<<dim3(n / 64, n / 64), dim3(32, 16)>>>((double*)a, (double*)b, (double*)c, n / 2); });
}
