// check: sound
// near: illegal_address
// what: a kernel uses constants that host code uses too, all known at compile time, and its parameters

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

const int WIDTH = 24;
constexpr float HALF = 0.5f;
enum Mode { forward, backward };
static const unsigned MASK = 0x0f;
struct Grid {
  static constexpr int rows = 6;
  int columns;
};
static float host_total = 0;

__global__ void run(float* x, Grid grid, Mode mode) {
  int column = threadIdx.x, row = threadIdx.y;
  if (column >= grid.columns || row >= Grid::rows) return;
  float value = (column & MASK) * HALF + row;
  x[row * WIDTH + column] = mode == forward ? value : -value;
}

int main() {
  float* x;
  float host[Grid::rows * WIDTH];
  Grid grid{WIDTH};
  CHECK(cudaMalloc(&x, sizeof host));
  run<<<1, dim3(32, 8)>>>(x, grid, backward);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost));
  for (float value : host) host_total += value;
  printf("%f\n", host_total);
  CHECK(cudaFree(x));
}
