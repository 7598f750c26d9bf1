// check: race
// what: softmax reduces twice through one shared scratch: the second store may overtake a slow warp's first read
// array: scratch

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <class Op>
__device__ float reduce(float v, float* scratch, Op op) {
  for (int d = 16; d > 0; d /= 2) v = op(v, __shfl_xor_sync(0xffffffff, v, d));
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = v;  // defect
  __syncthreads();
  v = scratch[0];  // other
  for (int w = 1; w < blockDim.x / 32; w++) v = op(v, scratch[w]);  // other
  return v;
}

__global__ void softmax(const float* in, float* out, int columns) {
  __shared__ float scratch[32];
  int x = threadIdx.x, i = blockIdx.x * columns + x;
  float v = x < columns ? in[i] : -INFINITY;
  float top = reduce(v, scratch, [](float a, float b) { return fmaxf(a, b); });
  float e = x < columns ? exp2f(v - top) : 0.0f;
  float sum = reduce(e, scratch, [](float a, float b) { return a + b; });
  if (x < columns) out[i] = e / sum;
}

int main() {
  const int rows = 3, columns = 90;
  std::vector<float> host(rows * columns);
  for (int i = 0; i < rows * columns; i++) host[i] = i % columns < 64 ? 1.0f : -1000.0f;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_out, host.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  softmax<<<rows, 96>>>(d_in, d_out, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, host.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g %g\n", host[0], host[columns - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
