// check: out_of_bounds
// what: the transpose of a wide matrix uses the input's row length for the output's rows, which are shorter and more
// array: out

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void transpose(const float* in, float* out, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) {
    float value = in[y * width + x];
    out[x * width + y] = value;  // defect
  }
}

int main() {
  const int height = 20, width = 45;
  std::vector<float> a(height * width), b(height * width);
  for (int i = 0; i < height * width; i++) a[i] = i;
  float *d_a, *d_b;
  CHECK(cudaMalloc(&d_a, a.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_b, b.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  transpose<<<dim3(3, 2), dim3(16, 16)>>>(d_a, d_b, height, width);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(b.data(), d_b, b.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", b[1], b[height], b.back());
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  return 0;
}
