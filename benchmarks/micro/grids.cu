// The same arithmetic in grids that do not fill the GPU: one block, half as many as multiprocessors, one too many.
// sizes: 6 132 (multiprocessors)
#include "micro.h"

constexpr int STEPS = 256;

__global__ void work(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float u = x[i], v = u + 1.0f;
#pragma unroll 8
  for (int step = 0; step < STEPS; step++) {
    u = u * 0.999f + v;
    v = v * 0.998f - u;
  }
  y[i] = u + v;
}

int main(int argc, char** argv) {
  const int sms = size_of_run(argc, argv, 6), resident = 2;  // blocks of 1024 that a multiprocessor holds
  const int most = sms * resident * 4;
  float *x = memory<float>((size_t)most * 1024), *y = memory<float>((size_t)most * 1024);
  measure("one block", [&] { work<<<1, 1024>>>(x, y); });
  measure("half the multiprocessors", [&] { work<<<sms / 2, 1024>>>(x, y); });
  measure("one wave", [&] { work<<<sms * resident, 1024>>>(x, y); });
  measure("one wave and a block", [&] { work<<<sms * resident + 1, 1024>>>(x, y); });
  measure("four waves", [&] { work<<<most, 1024>>>(x, y); });
}
