// check: sound
// near: unchecked_error
// what: copies of the buffer's size, of a part, and of nothing at all, all looked at

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

int main() {
  const int n = 1024;
  std::vector<float> host(2 * n, 1.0f);
  float* d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(float)));
  CHECK(cudaMemset(d_x, 0, n * sizeof(float)));
  CHECK(cudaMemcpy(d_x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  twice<<<n / 128, 128>>>(d_x, n);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), d_x, n / 2 * sizeof(float), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(host.data(), d_x, 0, cudaMemcpyDeviceToHost));
  printf("%g\n", host[0]);
  CHECK(cudaFree(d_x));
  return 0;
}
