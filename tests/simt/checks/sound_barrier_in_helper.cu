// check: sound
// near: barrier_divergence
// what: helper functions with barriers are called in branches that all threads of a block take together

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <class T, class Combine>
__device__ T combine(T* scratch, T value, Combine with) {
  scratch[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half >>= 1) {
    if (threadIdx.x < half) scratch[threadIdx.x] = with(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  T result = scratch[0];
  __syncthreads();
  return result;
}

__global__ void statistics(const float* in, float* out, int rows) {
  __shared__ float scratch[64];
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float value = in[row * 64 + threadIdx.x], result;
    if (row % 3 == 0)
      result = combine(scratch, value, [](float a, float b) { return a + b; });
    else if (row % 3 == 1)
      result = combine(scratch, value, [](float a, float b) { return fmaxf(a, b); });
    else
      continue;
    if (threadIdx.x == 0) out[row] = result;
  }
}

int main() {
  const int rows = 9;
  float host[rows * 64], *in, *out;
  for (int i = 0; i < rows * 64; i++) host[i] = i % 64;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, rows * sizeof(float)));
  CHECK(cudaMemset(out, 0, rows * sizeof(float)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  statistics<<<4, 64>>>(in, out, rows);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, rows * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%f %f\n", host[0], host[1]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
