// check: sound
// near: out_of_bounds
// what: rows are found by their pitch in bytes; the bytes between a row's end and the next row are never touched

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void row_sums(const float* image, size_t pitch, int width, int height, float* sums) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= height) return;
  const float* row = (const float*)((const char*)image + y * pitch);
  float sum = 0;
  for (int x = 0; x < width; x++) sum += row[x];
  sums[y] = sum;
}

int main() {
  const int width = 37, height = 24;
  float host[height][width], sums[height], *d_image, *d_sums;
  size_t pitch;
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) host[y][x] = x + y;
  CHECK(cudaMallocPitch(&d_image, &pitch, width * sizeof(float), height));
  CHECK(cudaMalloc(&d_sums, sizeof(sums)));
  CHECK(cudaMemcpy2D(d_image, pitch, host, width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice));
  row_sums<<<1, 32>>>(d_image, pitch, width, height, d_sums);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums, d_sums, sizeof(sums), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", sums[0], sums[height - 1]);
  CHECK(cudaFree(d_image));
  CHECK(cudaFree(d_sums));
  return 0;
}
