// Matrices that are not square transposed, and the heads of attention split: with and without a tile.
// sizes: 64 4096 (rows; there are 3/2 as many columns)
#include "../micro/micro.h"

constexpr int HEADS = 12, DEPTH = 64;

__global__ void transpose_1d(float* in, float* out, int rows, int columns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * columns) {
    int r = i / columns;
    int c = i % columns;
    out[c * rows + r] = in[i];
  }
}

__global__ void transpose_2d(float* in, float* out, int rows, int columns) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  int c = blockIdx.y * blockDim.y + threadIdx.y;
  if (r < rows && c < columns) out[c * rows + r] = in[r * columns + c];
}

__global__ void transpose_tile16(float* in, float* out, int rows, int columns) {
  __shared__ float tile[16][16];
  int r = blockIdx.y * 16 + threadIdx.y;
  int c = blockIdx.x * 16 + threadIdx.x;
  if (r < rows && c < columns) tile[threadIdx.y][threadIdx.x] = in[r * columns + c];
  __syncthreads();
  int out_row = blockIdx.x * 16 + threadIdx.y;
  int out_column = blockIdx.y * 16 + threadIdx.x;
  if (out_row < columns && out_column < rows) out[out_row * rows + out_column] = tile[threadIdx.x][threadIdx.y];
}

__global__ void transpose_tile32_double(const double* in, double* out, int rows, int columns) {
  __shared__ double tile[32][33];
  int r = blockIdx.y * 32 + threadIdx.y;
  int c = blockIdx.x * 32 + threadIdx.x;
  tile[threadIdx.y][threadIdx.x] = in[r * columns + c];
  __syncthreads();
  r = blockIdx.x * 32 + threadIdx.y;
  c = blockIdx.y * 32 + threadIdx.x;
  out[r * rows + c] = tile[threadIdx.x][threadIdx.y];
}

// From (position, head, depth) to (head, position, depth).
__global__ void split_heads(float* in, float* out, int length) {
  int position = blockIdx.x, head = blockIdx.y, d = threadIdx.x;
  out[(head * length + position) * DEPTH + d] = in[(position * HEADS + head) * DEPTH + d];
}

// From (position, head, depth) to (head, depth, position), as keys are wanted.
__global__ void split_heads_transposed(float* in, float* out, int length) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= length * HEADS * DEPTH) return;
  int d = i % DEPTH;
  int head = i / DEPTH % HEADS;
  int position = i / DEPTH / HEADS;
  out[(head * DEPTH + d) * length + position] = in[i];
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 64), columns = rows / 2 * 3;
  const size_t n = (size_t)rows * columns;
  const int length = n / (HEADS * DEPTH);
  float *in = memory<float>(2 * n), *out = memory<float>(2 * n);
  const dim3 sixteen(16, 16), tiles(columns / 16, rows / 16);
  measure("1-D blocks", [&] { transpose_1d<<<n / 256, 256>>>(in, out, rows, columns); });
  measure("2-D blocks", [&] { transpose_2d<<<dim3(rows / 16, columns / 16), sixteen>>>(in, out, rows, columns); });
  measure("tile of 16", [&] { transpose_tile16<<<tiles, sixteen>>>(in, out, rows, columns); });
  measure("padded tile of doubles", [&] {
    transpose_tile32_double<<<dim3(columns / 32, rows / 32), dim3(32, 32)>>>((double*)in, (double*)out, rows, columns);
  });
  measure("split heads", [&] { split_heads<<<dim3(length, HEADS), DEPTH>>>(in, out, length); });
  measure("split heads, transposed", [&] { split_heads_transposed<<<n / 128, 128>>>(in, out, length); });
}
