// check: sound
// near: race
// what: two buffers take turns, so one barrier a step is enough: whoever writes a buffer again has met all its readers

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define T 8

__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[2][T][T], bs[2][T][T];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * T + ty, column = blockIdx.x * T + tx;
  as[0][ty][tx] = a[row * n + tx];
  bs[0][ty][tx] = b[ty * n + column];
  __syncthreads();
  float sum = 0;
  for (int step = 0; step < n / T; step++) {
    int now = step % 2, k0 = (step + 1) * T;
    if (k0 < n) {
      as[1 - now][ty][tx] = a[row * n + k0 + tx];
      bs[1 - now][ty][tx] = b[(k0 + ty) * n + column];
    }
    for (int k = 0; k < T; k++) sum += as[now][ty][k] * bs[now][k][tx];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

int main() {
  const int n = 40;
  const size_t bytes = n * n * sizeof(float);
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; i++) a[i] = i % 4, b[i] = i % 7;
  float *d_a, *d_b, *d_c;
  CHECK(cudaMalloc(&d_a, bytes));
  CHECK(cudaMalloc(&d_b, bytes));
  CHECK(cudaMalloc(&d_c, bytes));
  CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));
  matmul<<<dim3(n / T, n / T), dim3(T, T)>>>(d_a, d_b, d_c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", c[0], c[n * n - 1]);
  for (float* p : {d_a, d_b, d_c}) CHECK(cudaFree(p));
  return 0;
}
