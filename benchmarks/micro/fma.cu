// Multiply-adds, 1 or 4 independent chains a thread, on full and on nearly empty multiprocessors; and in doubles.
// sizes: 4 2112 (blocks of the full ones; 16 blocks on each of 132 multiprocessors)
#include "micro.h"

constexpr int STEPS = 512;

template <class T, int CHAINS>
__global__ void chains(T* y, T a, T b) {
  T v[CHAINS];
  for (int c = 0; c < CHAINS; c++) v[c] = threadIdx.x + c;
#pragma unroll 16
  for (int step = 0; step < STEPS; step++)
    for (int c = 0; c < CHAINS; c++) v[c] = v[c] * a + b;
  T sum = 0;
  for (int c = 0; c < CHAINS; c++) sum += v[c];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const int blocks = size_of_run(argc, argv, 4), few = std::max(1, blocks / 16);
  float* y = memory<float>((size_t)blocks * 256 * 2);
  const float a = 0.999f, b = 0.001f;
  measure("full, 1 chain", [&] { chains<float, 1><<<blocks, 256>>>(y, a, b); });
  measure("full, 4 chains", [&] { chains<float, 4><<<blocks, 256>>>(y, a, b); });
  measure("a warp a block, 1 chain", [&] { chains<float, 1><<<few, 32>>>(y, a, b); });
  measure("a warp a block, 4 chains", [&] { chains<float, 4><<<few, 32>>>(y, a, b); });
  measure("4 warps a block, 1 chain", [&] { chains<float, 1><<<few, 128>>>(y, a, b); });
  measure("doubles, full, 1 chain", [&] { chains<double, 1><<<blocks, 256>>>((double*)y, a, b); });
}
