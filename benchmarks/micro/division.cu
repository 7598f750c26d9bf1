// Index arithmetic: a place in four dimensions found by dividing, in 32 bits, in 64 bits, and by sizes known when compiling.
// sizes: 12 25 (log2 of the threads)
#include "micro.h"

// y = x with its first two axes swapped: x is (A, B, C, D).
template <class Index>
__global__ void swapped(const float* x, float* y, Index A, Index B, Index C, Index D) {
  const Index i = blockIdx.x * (Index)blockDim.x + threadIdx.x;
  const Index d = i % D, c = i / D % C, b = i / D / C % B, a = i / D / C / B;
  y[((b * A + a) * C + c) * D + d] = x[i];
}

__global__ void swapped_by_constants(const float* x, float* y) {
  constexpr int B = 16, C = 16, D = 4;
  const int A = gridDim.x * blockDim.x / (B * C * D);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int d = i % D, c = i / D % C, b = i / D / C % B, a = i / D / C / B;
  y[((b * A + a) * C + c) * D + d] = x[i];
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12);
  float *x = memory<float>(n), *y = memory<float>(n);
  measure("32 bits", [&] { swapped<int><<<n / 256, 256>>>(x, y, n / 1024, 16, 16, 4); });
  measure("64 bits", [&] { swapped<long long><<<n / 256, 256>>>(x, y, n / 1024, 16, 16, 4); });
  measure("constants", [&] { swapped_by_constants<<<n / 256, 256>>>(x, y); });
}
