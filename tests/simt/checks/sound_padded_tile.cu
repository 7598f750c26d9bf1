// check: sound
// near: uninitialized
// what: a transpose's tile has a column more than it needs, against bank conflicts; nobody writes or reads it

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void transpose(const float* in, float* out, int height, int width) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < width && y + k < height) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += 8)
    if (x < height && y + k < width) out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}

int main() {
  const int height = 45, width = 70;
  std::vector<float> a(height * width), b(height * width);
  for (int i = 0; i < height * width; i++) a[i] = i;
  float *d_a, *d_b;
  CHECK(cudaMalloc(&d_a, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_b, b.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  transpose<<<dim3(3, 2), dim3(32, 8)>>>(d_a, d_b, height, width);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(b.data(), d_b, b.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", b[1], b[44], b[45]);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  return 0;
}
