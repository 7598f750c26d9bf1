// check: sound
// near: out_of_bounds
// what: a kernel with a parameter pack adds up as many arrays as it gets, each of which is long enough

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

template <class T, class... Ts>
__device__ float add(int i, const T* first, const Ts*... rest) {
  if constexpr (sizeof...(rest) == 0)
    return first[i];
  else
    return first[i] + add(i, rest...);
}

template <class... Ts>
__global__ void add_all(float* out, int n, Ts... inputs) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = add(i, inputs...);
}

int main() {
  const int n = 100;
  float *out, *a;
  short* b;
  cudaMalloc(&out, n * sizeof(float));
  cudaMalloc(&a, n * sizeof(float));
  cudaMalloc(&b, n * sizeof(short));
  cudaMemset(a, 0, n * sizeof(float));
  cudaMemset(b, 0, n * sizeof(short));
  add_all<<<2, 64>>>(out, n, a);
  add_all<<<2, 64>>>(out, n, a, b, a);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(out);
  cudaFree(a);
  cudaFree(b);
}
