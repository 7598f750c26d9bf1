// A lab on memory: sums of columns and rows, structures, swapped indices, strides, copies of bytes, of pairs, shifted.
// sizes: 64 4096 (the side of a matrix)
#include "../micro/micro.h"

struct Point {
  float x, y, z, w;
};

// A thread a column and 64 rows: neighbours read neighbours. The parts are added by atomics.
__global__ void column_sums_parts(const float* x, float* sums, int rows, int cols) {
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (col >= cols) return;
  int first = blockIdx.y * 64, last = min(first + 64, rows);
  float sum = 0.0f;
  for (int row = first; row < last; row++) sum += x[row * cols + col];
  atomicAdd(&sums[col], sum);
}

// A thread a row, but the block loads tiles of 32 x 32 by rows; the tile has a column more than it needs.
__global__ void row_sums_through_tile(const float* x, float* sums, int cols) {
  __shared__ float tile[32][33];
  int first = blockIdx.x * 32;
  float sum = 0.0f;
  for (int start = 0; start < cols; start += 32) {
    for (int r = threadIdx.y; r < 32; r += blockDim.y)
      tile[r][threadIdx.x] = x[(first + r) * cols + start + threadIdx.x];
    __syncthreads();
    if (threadIdx.y == 0)
      for (int c = 0; c < 32; c++) sum += tile[threadIdx.x][c];
    __syncthreads();
  }
  if (threadIdx.y == 0) sums[first + threadIdx.x] = sum;
}

// An array of structures of four floats, of which three are read.
__global__ void lengths_of_structures(const Point* points, float* lengths, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  lengths[i] = sqrtf(points[i].x * points[i].x + points[i].y * points[i].y + points[i].z * points[i].z);
}

// The same from three arrays.
__global__ void lengths_of_arrays(const float* x, const float* y, const float* z, float* lengths, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  lengths[i] = sqrtf(x[i] * x[i] + y[i] * y[i] + z[i] * z[i]);
}

// The sum of two matrices with the x index as row: neighbours are a row apart.
__global__ void add_swapped(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < n && col < n) c[row * n + col] = a[row * n + col] + b[row * n + col];
}

// Every third element, next to each other in the result.
__global__ void take_every_third(const float* __restrict__ x, float* __restrict__ y, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] = x[3 * i] * 2.0f;
}

// Bytes, one a thread.
__global__ void copy_bytes(const unsigned char* from, unsigned char* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[i];
}

// Pairs of short numbers in steps of the grid, read an odd number of pairs further on.
__global__ void copy_short2_shifted(const short2* from, short2* to, int n, int shift) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i + shift < n; i += gridDim.x * blockDim.x)
    to[i] = from[i + shift];
}

int main(int argc, char** argv) {
  const int side = size_of_run(argc, argv, 64), n = side * side;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n), *sums = memory<float>(side);
  std::vector<float> values(n);
  unsigned state = 47;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("sums of columns, 64 rows a thread",
          [&] { column_sums_parts<<<dim3((side + 127) / 128, (side + 63) / 64), 128>>>(x, sums, side, side); });
  measure("sums of rows through a tile", [&] { row_sums_through_tile<<<side / 32, dim3(32, 8)>>>(x, sums, side); });
  measure("lengths, structures", [&] { lengths_of_structures<<<(n / 4 + 255) / 256, 256>>>((Point*)x, y, n / 4); });
  measure("lengths, arrays",
          [&] { lengths_of_arrays<<<(n / 4 + 255) / 256, 256>>>(x, x + n / 4, x + n / 2, y, n / 4); });
  measure("sum of matrices, swapped",
          [&] { add_swapped<<<dim3(side / 16, side / 16), dim3(16, 16)>>>(x, z, y, side); });
  measure("every third element", [&] { take_every_third<<<(n / 3 + 127) / 128, 128>>>(x, y, n / 3); });
  measure("copy of bytes",
          [&] { copy_bytes<<<(n * 2 + 255) / 256, 256>>>((unsigned char*)x, (unsigned char*)y, n * 2); });
  measure("copy of short2, shifted",
          [&] { copy_short2_shifted<<<std::min(n / 512, 1056), 512>>>((short2*)x, (short2*)y, n, 17); });
}
