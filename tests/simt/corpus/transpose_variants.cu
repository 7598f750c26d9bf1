// title: matrix transpose: copy, naive by rows and columns, shared memory with and without padding, diagonal blocks
// features: shared_memory, transpose, kernel_function_pointers
// args: 96 64

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#define BDIMX 16
#define BDIMY 16
#define IPAD 1

#define CHECK(call)                                                                        \
  do {                                                                                     \
    const cudaError_t status_ = (call);                                                    \
    if (status_ != cudaSuccess) {                                                          \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(status_)); \
      std::exit(EXIT_FAILURE);                                                             \
    }                                                                                      \
  } while (0)

typedef void (*kernel_t)(int* out, const int* in, int nx, int ny);

__global__ void copyRow(int* out, const int* in, int nx, int ny) {
  unsigned int ix = blockDim.x * blockIdx.x + threadIdx.x, iy = blockDim.y * blockIdx.y + threadIdx.y;
  if (ix < nx && iy < ny) out[iy * nx + ix] = in[iy * nx + ix];
}

__global__ void naiveRow(int* out, const int* in, int nx, int ny) {
  unsigned int ix = blockDim.x * blockIdx.x + threadIdx.x, iy = blockDim.y * blockIdx.y + threadIdx.y;
  if (ix < nx && iy < ny) out[ix * ny + iy] = in[iy * nx + ix];
}

__global__ void naiveCol(int* out, const int* in, int nx, int ny) {
  unsigned int ix = blockDim.x * blockIdx.x + threadIdx.x, iy = blockDim.y * blockIdx.y + threadIdx.y;
  if (ix < ny && iy < nx) out[iy * ny + ix] = in[ix * nx + iy];
}

__global__ void unroll4Row(int* out, const int* in, int nx, int ny) {
  unsigned int ix = blockDim.x * blockIdx.x * 4 + threadIdx.x, iy = blockDim.y * blockIdx.y + threadIdx.y;
  if (iy >= ny) return;
#pragma unroll
  for (int part = 0; part < 4; part++)
    if (ix + part * blockDim.x < nx) out[(ix + part * blockDim.x) * ny + iy] = in[iy * nx + ix + part * blockDim.x];
}

// Blocks are numbered along diagonals, so that neighbouring blocks write to different partitions of the memory.
__global__ void diagonalRow(int* out, const int* in, int nx, int ny) {
  unsigned int blk_y = blockIdx.x;
  unsigned int blk_x = (blockIdx.x + blockIdx.y) % gridDim.x;
  unsigned int ix = blockDim.x * blk_x + threadIdx.x, iy = blockDim.y * blk_y + threadIdx.y;
  if (ix < nx && iy < ny) out[ix * ny + iy] = in[iy * nx + ix];
}

template <int PAD>
__global__ void sharedTile(int* out, const int* in, int nx, int ny) {
  __shared__ int tile[BDIMY][BDIMX + PAD];
  unsigned int ix = blockIdx.x * blockDim.x + threadIdx.x, iy = blockIdx.y * blockDim.y + threadIdx.y;
  if (ix < nx && iy < ny) tile[threadIdx.y][threadIdx.x] = in[iy * nx + ix];
  __syncthreads();
  unsigned int bidx = threadIdx.y * blockDim.x + threadIdx.x;
  unsigned int irow = bidx / blockDim.y, icol = bidx % blockDim.y;
  unsigned int ox = blockIdx.y * blockDim.y + icol, oy = blockIdx.x * blockDim.x + irow;
  if (ox < ny && oy < nx) out[oy * ny + ox] = tile[icol][irow];
}

struct Version {
  const char* name;
  kernel_t kernel;
  bool transposes;
  int columns_per_thread;
};

int main(int argc, char** argv) {
  int nx = argc > 1 ? std::atoi(argv[1]) : 96;
  int ny = argc > 2 ? std::atoi(argv[2]) : 64;
  size_t bytes = sizeof(int) * nx * ny;
  int *in = static_cast<int*>(std::malloc(bytes)), *out = static_cast<int*>(std::malloc(bytes));
  for (int i = 0; i < nx * ny; i++) in[i] = i * 3 + 1;

  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, bytes));
  CHECK(cudaMalloc(&d_out, bytes));
  CHECK(cudaMemcpy(d_in, in, bytes, cudaMemcpyHostToDevice));

  Version versions[] = {
      {"copyRow", &copyRow, false, 1},
      {"naiveRow", &naiveRow, true, 1},
      {"naiveCol", &naiveCol, true, 1},
      {"unroll4Row", &unroll4Row, true, 4},
      {"diagonalRow", &diagonalRow, true, 1},
      {"shared", &sharedTile<0>, true, 1},
      {"shared, padded", sharedTile<IPAD>, true, 1},
  };
  int failures = 0;
  for (const Version& v : versions) {
    if (v.kernel == &diagonalRow && nx != ny && nx % BDIMX + ny % BDIMY) continue;
    dim3 block(BDIMX, BDIMY);
    int side = nx > ny ? nx : ny;
    dim3 grid((nx + BDIMX * v.columns_per_thread - 1) / (BDIMX * v.columns_per_thread), (ny + BDIMY - 1) / BDIMY);
    if (v.kernel == &naiveCol || v.kernel == &diagonalRow)
      grid = dim3((side + BDIMX - 1) / BDIMX, (side + BDIMY - 1) / BDIMY);
    CHECK(cudaMemset(d_out, 0, bytes));
    v.kernel<<<grid, block>>>(d_out, d_in, nx, ny);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
    int wrong = 0;
    for (int y = 0; y < ny; y++)
      for (int x = 0; x < nx; x++) wrong += in[y * nx + x] != (v.transposes ? out[x * ny + y] : out[y * nx + x]);
    std::printf("%-15s %s\n", v.name, wrong ? "wrong" : "right");
    failures += wrong > 0;
  }
  // The result of two transposes is the matrix itself.
  sharedTile<IPAD><<<dim3((nx + 15) / 16, (ny + 15) / 16), dim3(16, 16)>>>(d_out, d_in, nx, ny);
  std::swap(d_in, d_out);
  sharedTile<IPAD><<<dim3((ny + 15) / 16, (nx + 15) / 16), dim3(16, 16)>>>(d_out, d_in, ny, nx);
  CHECK(cudaMemcpy(out, d_out, bytes, cudaMemcpyDeviceToHost));
  failures += std::memcmp(in, out, bytes) != 0;
  std::printf("twice: %s\n", std::memcmp(in, out, bytes) ? "differs" : "the matrix itself");

  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  std::free(in);
  std::free(out);
  std::puts(failures ? "FAILED" : "PASSED");
  return failures != 0;
}
