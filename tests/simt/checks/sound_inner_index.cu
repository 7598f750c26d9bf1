// check: sound
// near: out_of_bounds
// what: a column for the right halo, and only the row's last thread fills it

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define TILE 16

__global__ void horizontal_gradient(const float* in, float* out, int width) {
  __shared__ float tile[TILE][TILE + 1];
  int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * TILE + tx, y = blockIdx.y * TILE + ty;
  tile[ty][tx] = in[y * width + x];
  if (tx == TILE - 1 && x + 1 < width) tile[ty][TILE] = in[y * width + x + 1];
  __syncthreads();
  if (x + 1 < width && ty + 1 < TILE) out[y * width + x] = tile[ty][tx + 1] - tile[ty][tx];
}

int main() {
  const int width = 32, height = 16;
  float host[height * width], *d_in, *d_out;
  for (int i = 0; i < height * width; i++) host[i] = i % width * (i / width);
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, sizeof(host)));
  horizontal_gradient<<<dim3(2, 1), dim3(TILE, TILE)>>>(d_in, d_out, width);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[5 * width + 3], host[7 * width + 15]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
