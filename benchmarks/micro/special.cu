// Special functions: exp, log, sine, tanh, square root and division, over and over on one value.
// sizes: 2 2112 (blocks)
#include "micro.h"

constexpr int STEPS = 64;

struct Exp {
  __device__ static float of(float v) { return expf(v) * 0.3f; }
};
struct FastExp {
  __device__ static float of(float v) { return __expf(v) * 0.3f; }
};
struct Log {
  __device__ static float of(float v) { return logf(v + 1.5f); }
};
struct Tanh {
  __device__ static float of(float v) { return tanhf(v) + 0.5f; }
};
struct Sine {
  __device__ static float of(float v) { return sinf(v) + 0.5f; }
};
struct Root {
  __device__ static float of(float v) { return sqrtf(v) + 0.25f; }
};
struct Division {
  __device__ static float of(float v) { return 1.7f / (v + 0.5f); }
};

template <class Function>
__global__ void repeated(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
#pragma unroll 4
  for (int step = 0; step < STEPS; step++) v = Function::of(v);
  y[i] = v;
}

int main(int argc, char** argv) {
  const int blocks = size_of_run(argc, argv, 2);
  float *x = memory<float>((size_t)blocks * 256), *y = memory<float>((size_t)blocks * 256);
  measure("expf", [&] { repeated<Exp><<<blocks, 256>>>(x, y); });
  measure("__expf", [&] { repeated<FastExp><<<blocks, 256>>>(x, y); });
  measure("logf", [&] { repeated<Log><<<blocks, 256>>>(x, y); });
  measure("tanhf", [&] { repeated<Tanh><<<blocks, 256>>>(x, y); });
  measure("sinf", [&] { repeated<Sine><<<blocks, 256>>>(x, y); });
  measure("sqrtf", [&] { repeated<Root><<<blocks, 256>>>(x, y); });
  measure("division", [&] { repeated<Division><<<blocks, 256>>>(x, y); });
}
