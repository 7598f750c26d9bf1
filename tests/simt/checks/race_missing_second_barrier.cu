// check: race
// what: nothing keeps a fast warp from loading the next tiles while a slow one still computes with these

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define T 16

__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float tiles[2][T][T];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, column = blockIdx.x * T + tx;
  float sum = 0;
  for (int k0 = 0; k0 < n; k0 += T) {
    float from_a = a[row * n + k0 + tx], from_b = b[(k0 + ty) * n + column];
    tiles[0][ty][tx] = from_a, tiles[1][ty][tx] = from_b;  // defect
    __syncthreads();
    for (int k = 0; k < T; k++) sum += tiles[0][ty][k] * tiles[1][k][tx];  // other
  }
  c[row * n + column] = sum;
}

int main() {
  const int n = 48;
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; i++) a[i] = i % 5, b[i] = i % 3;
  size_t bytes = n * n * sizeof(float);
  float *d_a, *d_b, *d_c;
  CHECK(cudaMalloc(&d_a, bytes));
  CHECK(cudaMalloc(&d_b, bytes));
  CHECK(cudaMalloc(&d_c, bytes));
  CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));
  matmul<<<dim3(n / T, n / T), dim3(T, T)>>>(d_a, d_b, d_c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : c) sum += v;
  printf("%.0f\n", sum);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_c));
  return 0;
}
