// check: sound
// near: uninitialized
// what: the second kernel reads what the first one wrote; its grid is rounded up and covers everything

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void square(const float* in, float* squares, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) squares[i] = in[i] * in[i];
}

__global__ void total(const float* squares, int n, float* sum) {
  float mine = 0;
  for (int i = threadIdx.x; i < n; i += 32) mine += squares[i];
  for (int mask = 16; mask > 0; mask >>= 1) mine += __shfl_xor_sync(~0u, mine, mask);
  if (threadIdx.x == 0) *sum = mine;
}

int main() {
  const int n = 300, threads = 64;
  std::vector<float> host(n, 2.0f);
  float sum, *d_in, *d_squares, *d_sum;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_squares, n * sizeof(float)));
  CHECK(cudaMalloc(&d_sum, sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  square<<<(n + threads - 1) / threads, threads>>>(d_in, d_squares, n);
  CHECK(cudaGetLastError());
  total<<<1, 32>>>(d_squares, n, d_sum);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&sum, d_sum, sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f\n", sum);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_squares));
  CHECK(cudaFree(d_sum));
  return 0;
}
