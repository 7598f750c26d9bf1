// check: sound
// near: barrier_divergence
// what: threads outside of the matrix help to load the tiles and return behind the last barrier

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define TILE 8

__global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float as[TILE][TILE], bs[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * TILE + ty, column = blockIdx.x * TILE + tx;
  float sum = 0;
  for (int k0 = 0; k0 < n; k0 += TILE) {
    as[ty][tx] = row < n && k0 + tx < n ? a[row * n + k0 + tx] : 0.0f;
    bs[ty][tx] = column < n && k0 + ty < n ? b[(k0 + ty) * n + column] : 0.0f;
    __syncthreads();
    for (int k = 0; k < TILE && k0 + k < n; k++) {
      sum += as[ty][k] * bs[k][tx];
    }
    __syncthreads();
  }
  if (row >= n || column >= n) return;
  c[row * n + column] = sum;
}

int main() {
  const int n = 20;
  std::vector<float> a(n * n, 1.0f), b(n * n, 2.0f), c(n * n);
  float *d_a, *d_b, *d_c;
  CHECK(cudaMalloc(&d_a, n * n * sizeof(float)));
  CHECK(cudaMalloc(&d_b, n * n * sizeof(float)));
  CHECK(cudaMalloc(&d_c, n * n * sizeof(float)));
  CHECK(cudaMemcpy(d_a, a.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), n * n * sizeof(float), cudaMemcpyHostToDevice));
  matmul<<<dim3(3, 3), dim3(TILE, TILE)>>>(d_a, d_b, d_c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), d_c, n * n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", c[0], c[n * n - 1]);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_c));
  return 0;
}
