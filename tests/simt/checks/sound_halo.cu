// check: sound
// near: uninitialized
// what: a tile with a halo, which is zero where the image ends

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define TILE 8

__global__ void blur(const float* in, float* out, int height, int width) {
  __shared__ float tile[TILE + 2][TILE + 2];
  int x0 = blockIdx.x * TILE - 1, y0 = blockIdx.y * TILE - 1;
  for (int k = threadIdx.y * TILE + threadIdx.x; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
    int x = x0 + k % (TILE + 2), y = y0 + k / (TILE + 2);
    bool inside = x >= 0 && x < width && y >= 0 && y < height;
    if (inside) tile[k / (TILE + 2)][k % (TILE + 2)] = in[y * width + x];
    if (!inside) tile[k / (TILE + 2)][k % (TILE + 2)] = 0;
  }
  __syncthreads();
  int x = x0 + 1 + threadIdx.x, y = y0 + 1 + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = 0; dy < 3; dy++)
    for (int dx = 0; dx < 3; dx++) sum += tile[threadIdx.y + dy][threadIdx.x + dx];
  out[y * width + x] = sum;
}

int main() {
  const int height = 13, width = 18;
  std::vector<float> host(height * width, 1.0f);
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_out, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  blur<<<dim3(3, 2), dim3(TILE, TILE)>>>(d_in, d_out, height, width);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[5], host[2 * width + 5]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
