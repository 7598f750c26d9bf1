// check: sound
// near: race
// what: SGD with momentum in place: each element is read and written by one thread alone, over several launches

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sgd(float* weight, float* momentum, const float* grad, int n, float rate) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  momentum[i] = 0.5f * momentum[i] + grad[i];
  weight[i] -= rate * momentum[i];
}

int main() {
  const int n = 150;
  std::vector<float> weight(n, 4.0f), grad(n, 1.0f);
  float *d_weight, *d_momentum, *d_grad;
  CHECK(cudaMalloc(&d_weight, n * sizeof(float)));
  CHECK(cudaMalloc(&d_momentum, n * sizeof(float)));
  CHECK(cudaMalloc(&d_grad, n * sizeof(float)));
  CHECK(cudaMemcpy(d_weight, weight.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_momentum, 0, n * sizeof(float)));
  CHECK(cudaMemcpy(d_grad, grad.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  for (int step = 0; step < 3; step++) sgd<<<3, 64>>>(d_weight, d_momentum, d_grad, n, 0.25f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(weight.data(), d_weight, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", weight[n - 1]);
  for (float* p : {d_weight, d_momentum, d_grad}) CHECK(cudaFree(p));
  return 0;
}
