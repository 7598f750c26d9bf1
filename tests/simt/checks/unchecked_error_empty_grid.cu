// check: unchecked_error
// what: a short input gives a grid of 0 blocks, which is an error and not nothing; nobody looks

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void clamp01(float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = fminf(fmaxf(x[i], 0.0f), 1.0f);
}

int main() {
  for (int n : {1000, 100, 300}) {
    std::vector<float> host(n, 2.0f);
    float* d_x;
    CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CHECK(cudaMemcpy(d_x, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    int blocks = n / 256;
    clamp01<<<blocks, 256>>>(d_x, n);  // defect
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host.data(), d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
    printf("%g\n", host[n - 1]);
    CHECK(cudaFree(d_x));
  }
  return 0;
}
