/*
Matrix transpose: out[c][r] = in[r][c]. No arithmetic at all: only the way through memory differs.

    nvcc -std=c++17 -arch=native transpose.cu -o transpose && ./transpose
    python -m simt run transpose.cu

version 1: naive: a warp reads one row (32 neighbours) and writes one column (32 far apart)
version 2: through a tile in shared memory: reads and writes are rows; but a column of the tile lies in one bank
version 3: the tile's rows are one element longer, so that a column lies in 32 banks
Times are printed to stderr: they differ from run to run.
*/

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) check((call), #call, __LINE__)
static void check(cudaError_t error, const char* what, int line) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "transpose.cu:%d: %s: %s (%s)\n", line, what, cudaGetErrorString(error), cudaGetErrorName(error));
  exit(1);
}

constexpr int TILE = 32;      // a tile is TILE x TILE elements
constexpr int ROWS = 8;       // and a block TILE x ROWS threads: each thread moves TILE / ROWS elements

// ---- CPU reference ----

void transpose_cpu(const int* in, int* out, int rows, int columns) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) out[c * rows + r] = in[r * columns + c];
}

// ---- kernels ----

__global__ void transpose_naive(const int* in, int* out, int rows, int columns) {
  int c = blockIdx.x * TILE + threadIdx.x;
  for (int r = blockIdx.y * TILE + threadIdx.y; r < min(rows, (int)(blockIdx.y + 1) * TILE); r += ROWS)
    if (c < columns) out[c * rows + r] = in[r * columns + c];
}

template <int PAD>
__global__ void transpose_tiled(const int* __restrict__ in, int* __restrict__ out, int rows, int columns) {
  __shared__ int tile[TILE][TILE + PAD];
  int c = blockIdx.x * TILE + threadIdx.x;
  int r = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS)
    if (r + i < rows && c < columns) tile[threadIdx.y + i][threadIdx.x] = in[(r + i) * columns + c];
  __syncthreads();
  // The block's place is transposed too: its threads now walk along a row of the result.
  c = blockIdx.y * TILE + threadIdx.x;
  r = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
  for (int i = 0; i < TILE; i += ROWS)
    if (r + i < columns && c < rows) out[(r + i) * rows + c] = tile[threadIdx.x][threadIdx.y + i];
}

// ---- host ----

typedef void (*Kernel)(const int*, int*, int, int);

bool run(const char* name, Kernel kernel, const int* d_in, int* d_out, const std::vector<int>& expected, int rows, int columns) {
  size_t bytes = expected.size() * sizeof(int);
  cudaEvent_t start, stop;
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaMemset(d_out, 0xff, bytes));
  dim3 block(TILE, ROWS);
  dim3 grid((columns + TILE - 1) / TILE, (rows + TILE - 1) / TILE);
  CHECK(cudaEventRecord(start));
  kernel<<<grid, block>>>(d_in, d_out, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(stop));
  CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  fprintf(stderr, "%s: %.3f ms, %.2f GB/s\n", name, milliseconds, 2 * bytes / (milliseconds * 1e6));
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));

  std::vector<int> out(expected.size());
  CHECK(cudaMemcpy(out.data(), d_out, bytes, cudaMemcpyDeviceToHost));
  unsigned checksum = 0;
  for (int value : out) checksum = checksum * 31 + value;
  printf("%-8s %4d x %-4d %s  checksum %08x\n", name, rows, columns, out == expected ? "ok" : "WRONG", checksum);
  return out == expected;
}

int main() {
  bool ok = true;
  const int sizes[][2] = {{32, 32}, {256, 512}, {389, 517}, {1, 1000}};
  for (auto [rows, columns] : sizes) {
    std::vector<int> in(rows * columns), expected(rows * columns);
    for (size_t i = 0; i < in.size(); i++) in[i] = (int)(i * 2654435761u >> 7);
    transpose_cpu(in.data(), expected.data(), rows, columns);
    int *d_in, *d_out;
    CHECK(cudaMalloc(&d_in, in.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_out, in.size() * sizeof(int)));
    CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
    ok &= run("naive", transpose_naive, d_in, d_out, expected, rows, columns);
    ok &= run("tiled", transpose_tiled<0>, d_in, d_out, expected, rows, columns);
    ok &= run("padded", transpose_tiled<1>, d_in, d_out, expected, rows, columns);
    CHECK(cudaFree(d_in));
    CHECK(cudaFree(d_out));
  }
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
