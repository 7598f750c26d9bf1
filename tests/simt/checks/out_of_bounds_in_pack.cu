// check: out_of_bounds
// what: a kernel with a parameter pack adds up arrays, of which the last is shorter
// array: inputs

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

template <class... Ts>
__global__ void add_all(float* out, int n, const Ts*... inputs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (0.f + ... + inputs[i]);  // defect
}

int main() {
  const int n = 100;
  float *out, *a;
  int* b;
  cudaMalloc(&out, n * sizeof(float));
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, (n - 10) * sizeof(int));
  cudaMemset(a, 0, n * sizeof(float));
  cudaMemset(b, 0, (n - 10) * sizeof(int));
  add_all<<<2, 64>>>(out, n, a, b);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(out);
  cudaFree(a);
  cudaFree(b);
}
