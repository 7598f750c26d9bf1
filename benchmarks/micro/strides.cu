// Loads and stores whose neighbouring lanes are 1, 2, 3, 8 or 32 floats apart: 4 to 32 sectors a request.
// sizes: 13 24 (log2 of the threads)
#include "micro.h"

template <int STRIDE>
__global__ void load(const float* x, float* y) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = x[i * STRIDE];
}

template <int STRIDE>
__global__ void store(const float* x, float* y) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i * STRIDE] = x[i];
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 13);
  const unsigned blocks = n / 256;
  float *wide = memory<float>(n * 32), *narrow = memory<float>(n);
  measure("load stride 1", [&] { load<1><<<blocks, 256>>>(wide, narrow); });
  measure("load stride 2", [&] { load<2><<<blocks, 256>>>(wide, narrow); });
  measure("load stride 3", [&] { load<3><<<blocks, 256>>>(wide, narrow); });
  measure("load stride 8", [&] { load<8><<<blocks, 256>>>(wide, narrow); });
  measure("load stride 32", [&] { load<32><<<blocks, 256>>>(wide, narrow); });
  measure("store stride 2", [&] { store<2><<<blocks, 256>>>(narrow, wide); });
  measure("store stride 3", [&] { store<3><<<blocks, 256>>>(narrow, wide); });
  measure("store stride 32", [&] { store<32><<<blocks, 256>>>(narrow, wide); });
}
