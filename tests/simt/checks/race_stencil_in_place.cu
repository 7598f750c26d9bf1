// check: race
// what: the smoothed values go into the array that neighbouring threads still read from

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void smooth(const float* from, float* to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 1 || i >= n - 1) return;
  float left = from[i - 1], right = from[i + 1];  // other
  to[i] = (left + 2 * from[i] + right) / 4;  // defect
}

int main() {
  const int n = 200;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 8 * 16;
  float *d_a, *d_b;
  CHECK(cudaMalloc(&d_a, n * sizeof(float)));
  CHECK(cudaMalloc(&d_b, n * sizeof(float)));
  CHECK(cudaMemcpy(d_a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, d_a, n * sizeof(float), cudaMemcpyDeviceToDevice));
  for (int step = 0; step < 2; step++) {
    smooth<<<4, 50>>>(d_a, d_a, n);
    CHECK(cudaGetLastError());
    std::swap(d_a, d_b);
  }
  CHECK(cudaMemcpy(host.data(), d_a, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g %g %g\n", host[1], host[50], host[n - 2]);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  return 0;
}
