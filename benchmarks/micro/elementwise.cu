// One element a thread, several elements a thread, and 16 bytes at a time: what bandwidth each reaches.
// sizes: 14 27 (log2 of the floats)
#include "micro.h"

__global__ void saxpy(const float* x, float* y, float a, size_t n) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

__global__ void sigmoid(const float* x, float* y, size_t n) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = 1.0f / (1.0f + expf(-x[i]));
}

__global__ void copy_in_steps(const float* x, float* y, size_t n) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    y[i] = x[i];
}

__global__ void saxpy_float4(const float4* x, float4* y, float a, size_t n) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 u = x[i];
  float4 v = y[i];
  v.x += a * u.x, v.y += a * u.y, v.z += a * u.z, v.w += a * u.w;
  y[i] = v;
}

__global__ void add_up(const float* x, float* y, size_t n) {
  float sum = 0.0f;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    sum += x[i];
  y[blockIdx.x * (size_t)blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 14);
  const unsigned blocks = n / 256;
  float *x = memory<float>(n), *y = memory<float>(n);
  measure("saxpy", [&] { saxpy<<<blocks, 256>>>(x, y, 0.5f, n); });
  measure("sigmoid", [&] { sigmoid<<<blocks, 256>>>(x, y, n); });
  measure("copy, 16 a thread", [&] { copy_in_steps<<<blocks / 16, 256>>>(x, y, n); });
  measure("saxpy float4", [&] { saxpy_float4<<<blocks / 4, 256>>>((float4*)x, (float4*)y, 0.5f, n / 4); });
  measure("add up, 16 a thread", [&] { add_up<<<blocks / 16, 256>>>(x, y, n); });
  measure("blocks of 32", [&] { saxpy<<<n / 32, 32>>>(x, y, 0.5f, n); });
  measure("blocks of 1024", [&] { saxpy<<<n / 1024, 1024>>>(x, y, 0.5f, n); });
}
