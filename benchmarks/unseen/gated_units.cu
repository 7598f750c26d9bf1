// Activations with gates, their gradients, and others: exact GELU backwards, GLU, SELU, maxout, squares with a mask.
// sizes: 14 24 (log2 of the elements)
#include <cuda_fp16.h>

#include "../micro/micro.h"

constexpr int HALF = 1000;

// The first half of each row times the sigmoid of the second half.
__global__ void glu_halves(float* x, float* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int row = i / HALF, column = i % HALF;
  float value = x[row * 2 * HALF + column];
  float gate = x[row * 2 * HALF + HALF + column];
  y[i] = value * (1.0f / (1.0f + expf(-gate)));
}

// Value and gate lie in two arrays; four elements a thread.
__global__ void geglu_float4(const float4* __restrict__ value, const float4* __restrict__ gate, float4* __restrict__ y,
                             int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 v = value[i], g = gate[i];
  float4 out;
  out.x = v.x * 0.5f * g.x * (1.0f + erff(g.x * 0.70710678f));
  out.y = v.y * 0.5f * g.y * (1.0f + erff(g.y * 0.70710678f));
  out.z = v.z * 0.5f * g.z * (1.0f + erff(g.z * 0.70710678f));
  out.w = v.w * 0.5f * g.w * (1.0f + erff(g.w * 0.70710678f));
  y[i] = out;
}

// Two gradients out of three inputs, in turns of the whole grid.
__global__ void swiglu_backward(const float* value, const float* gate, const float* gradient, float* value_gradient,
                                float* gate_gradient, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float g = gate[i], sigmoid = 1.0f / (1.0f + __expf(-g));
    float silu = g * sigmoid;
    value_gradient[i] = gradient[i] * silu;
    gate_gradient[i] = gradient[i] * value[i] * (sigmoid + silu * (1.0f - sigmoid));
  }
}

// The exact one, with the error function and the bell curve.
__global__ void gelu_backward(float* x, float* gradient, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    float below = 0.5f * (1.0f + erff(v / sqrtf(2.0f)));
    float bell = expf(-0.5f * v * v) / sqrtf(2.0f * 3.14159265f);
    out[i] = gradient[i] * (below + v * bell);
  }
}

// Sixteen bytes of halves a thread.
__global__ void relu6_halves(const uint4* x, uint4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint4 packed = x[i];
  __half2* pairs = reinterpret_cast<__half2*>(&packed);
  const __half2 zero = __float2half2_rn(0.0f), six = __float2half2_rn(6.0f);
#pragma unroll
  for (int k = 0; k < 4; k++) pairs[k] = __hmin2(__hmax2(pairs[k], zero), six);
  y[i] = packed;
}

// The sign decides between a cheap and an expensive way.
__global__ void selu(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (x[i] > 0.0f)
    y[i] = 1.0507009873554805 * x[i];
  else
    y[i] = 1.0507009873554805 * 1.6732632423543772 * (exp(x[i]) - 1.0f);
}

// The largest of four neighbours.
__global__ void maxout_of_4(const float4* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  y[i] = fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

// The square of what is positive, and a bit that tells whether it was.
__global__ void squared_relu_and_mask(const float* x, float* y, unsigned* mask, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool positive = i < n && x[i] > 0.0f;
  unsigned bits = __ballot_sync(0xffffffff, positive);
  if (i >= n) return;
  y[i] = positive ? x[i] * x[i] : 0.0f;
  if (threadIdx.x % 32 == 0) mask[i / 32] = bits;
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14), total = n / (2 * HALF) * HALF;
  float *x = memory<float>(n), *gate = memory<float>(n), *gradient = memory<float>(n);
  float *y = memory<float>(n), *z = memory<float>(n);
  std::vector<float> values(n);
  unsigned state = 11;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("GLU of halves", [&] { glu_halves<<<(total + 255) / 256, 256>>>(x, y, total); });
  measure("GEGLU, float4",
          [&] { geglu_float4<<<n / 4 / 128, 128>>>((float4*)gradient, (float4*)x, (float4*)y, n / 4); });
  measure("SwiGLU backwards", [&] { swiglu_backward<<<528, 256>>>(gradient, x, gate, y, z, n); });
  measure("GELU backwards", [&] { gelu_backward<<<n / 256, 256>>>(x, gradient, y, n); });
  measure("ReLU6 of halves", [&] { relu6_halves<<<n / 8 / 256, 256>>>((uint4*)gate, (uint4*)z, n / 8); });
  measure("SELU", [&] { selu<<<n / 512, 512>>>(x, y, n); });
  measure("maxout of four", [&] { maxout_of_4<<<n / 4 / 256, 256>>>((float4*)x, y, n / 4); });
  measure("square and mask", [&] { squared_relu_and_mask<<<n / 128, 128>>>(x, y, (unsigned*)z, n); });
}
