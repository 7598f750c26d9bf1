// Copies with 1, 2, 4, 8 and 16 bytes a lane: 1 to 16 sectors a request.
// sizes: 13 26 (log2 of the threads)
#include "micro.h"
#include <cuda_fp16.h>

template <class T>
__global__ void copy(const T* x, T* y) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = x[i];
}

template <class T>
void run(const char* label, size_t n) {
  T *x = memory<T>(n), *y = memory<T>(n);
  measure(label, [&] { copy<T><<<n / 256, 256>>>(x, y); });
  CHECK(cudaFree(x));
  CHECK(cudaFree(y));
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 13);
  run<unsigned char>("copy unsigned char", n);
  run<__half>("copy half", n);
  run<float>("copy float", n);
  run<double>("copy double", n);
  run<float2>("copy float2", n);
  run<float4>("copy float4", n);
}
