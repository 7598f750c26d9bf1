// check: sound
// near: schedule
// what: the order of the additions changes the sum's last digits, which the program does not depend on

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add_up(const float* in, int n, float* sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, in[i]);
}

int main() {
  const int n = 500;
  std::vector<float> host(n);
  double exact = 0;
  for (int i = 0; i < n; i++) exact += host[i] = 1.0f / (i + 1);
  float sum, *d_in, *d_sum;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_sum, sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_sum, 0, sizeof(float)));
  add_up<<<8, 64>>>(d_in, n, d_sum);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&sum, d_sum, sizeof(float), cudaMemcpyDeviceToHost));
  printf("%s\n", std::fabs(sum - exact) < 1e-4 * exact ? "right" : "wrong");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_sum));
  return 0;
}
