// check: sound
// near: uninitialized
// what: a condition chooses one of two neighbouring members, of which only one has a value

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Bounds {
  float low, high;
};

__global__ void clip(const Bounds* limits, const int* upper, float* out, int n) {
  __shared__ Bounds of_block;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) of_block.low = limits->low;
  __syncthreads();
  if (i >= n) return;
  float own;
  if (upper[i])
    own = of_block.high;
  else
    own = of_block.low;
  out[i] = own + (upper[i] ? limits->high : limits->low);
}

int main() {
  const int n = 200;
  std::vector<float> out(n);
  Bounds* limits;
  int* upper;
  float* d_out;
  CHECK(cudaMalloc(&limits, sizeof(Bounds)));
  CHECK(cudaMemset(limits, 0, sizeof(float)));  // the lower one
  CHECK(cudaMalloc(&upper, n * sizeof(int)));
  CHECK(cudaMemset(upper, 0, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  clip<<<(n + 63) / 64, 64>>>(limits, upper, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g\n", out[7]);
  CHECK(cudaFree(limits));
  CHECK(cudaFree(upper));
  CHECK(cudaFree(d_out));
  return 0;
}
