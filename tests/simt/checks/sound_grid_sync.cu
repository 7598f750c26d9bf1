// check: sound
// near: race
// what: a cooperative launch: grid.sync() lets every block see what all the others wrote before it

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <cuda_runtime.h>
#include <cooperative_groups.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

namespace cg = cooperative_groups;

__global__ void diffuse(float* a, float* b, int n, int steps) {
  cg::grid_group grid = cg::this_grid();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float *from = a, *to = b;
  for (int step = 0; step < steps; step++) {
    if (i > 0 && i < n - 1) to[i] = 0.25f * from[i - 1] + 0.5f * from[i] + 0.25f * from[i + 1];
    grid.sync();
    float* other = from;
    from = to;
    to = other;
  }
}

int main() {
  int n = 128, steps = 4;
  std::vector<float> host(n);
  host[31] = host[64] = 256;
  float *d_a, *d_b;
  CHECK(cudaMalloc(&d_a, n * sizeof(float)));
  CHECK(cudaMalloc(&d_b, n * sizeof(float)));
  CHECK(cudaMemcpy(d_a, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  void* arguments[] = {&d_a, &d_b, &n, &steps};
  CHECK(cudaLaunchCooperativeKernel((void*)diffuse, dim3(4), dim3(32), arguments, 0, 0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), d_a, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 27; i < 36; i++) printf("%g ", host[i]);
  printf("\n");
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  return 0;
}
