// Copies that begin 0, 1, 4 or 8 floats past a 128-byte boundary: one sector more a request, unless a whole sector is skipped.
// sizes: 14 26 (log2 of the threads)
#include "micro.h"

__global__ void load_from(const float* x, float* y, int offset) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i] = x[i + offset];
}

__global__ void store_to(const float* x, float* y, int offset) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  y[i + offset] = x[i];
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 14);
  const unsigned blocks = n / 256;
  float *x = memory<float>(n + 32), *y = memory<float>(n + 32);
  measure("load offset 0", [&] { load_from<<<blocks, 256>>>(x, y, 0); });
  measure("load offset 1", [&] { load_from<<<blocks, 256>>>(x, y, 1); });
  measure("load offset 4", [&] { load_from<<<blocks, 256>>>(x, y, 4); });
  measure("load offset 8", [&] { load_from<<<blocks, 256>>>(x, y, 8); });
  measure("store offset 1", [&] { store_to<<<blocks, 256>>>(x, y, 1); });
  measure("store offset 8", [&] { store_to<<<blocks, 256>>>(x, y, 8); });
}
