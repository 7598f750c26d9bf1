// check: uninitialized
// what: a matrix product declares two tiles and loads only the first
// array: right

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

const int T = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float left[T][T];
  __shared__ float right[T][T];
  int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n / T; tile++) {
    left[threadIdx.y][threadIdx.x] = a[row * n + tile * T + threadIdx.x];
    __syncthreads();
    for (int k = 0; k < T; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];  // defect
    __syncthreads();
  }
  c[row * n + column] = sum + 0 * b[row * n + column];
}

int main() {
  const int n = 32;
  std::vector<float> host(n * n, 1.f);
  float *a, *b, *c;
  CHECK(cudaMalloc(&a, n * n * sizeof(float)));
  CHECK(cudaMalloc(&b, n * n * sizeof(float)));
  CHECK(cudaMalloc(&c, n * n * sizeof(float)));
  CHECK(cudaMemcpy(a, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, host.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  multiply<<<dim3(2, 2), dim3(T, T)>>>(a, b, c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%f\n", host[0]);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}
