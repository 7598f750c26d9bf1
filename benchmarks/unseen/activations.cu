// Activations of neural networks, element by element: one, two or four elements a thread, in blocks of several sizes.
// sizes: 14 25 (log2 of the elements)
#include "../micro/micro.h"

#include <cuda_fp16.h>

constexpr int CHANNELS = 768;

__global__ void gelu(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
  }
}

__global__ void silu(float* x, float* y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = x[i] / (1.0f + expf(-x[i]));
}

__global__ void leaky_relu(const float4* x, float4* y, float slope, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  v.x = v.x > 0.0f ? v.x : slope * v.x;
  v.y = v.y > 0.0f ? v.y : slope * v.y;
  v.z = v.z > 0.0f ? v.z : slope * v.z;
  v.w = v.w > 0.0f ? v.w : slope * v.w;
  y[i] = v;
}

__global__ void bias_residual(float* x, float* bias, float* residual, float* y, int n, int channels) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float v = x[i] + bias[i % channels];
    v = fmaxf(v, 0.0f);
    y[i] = v + residual[i];
  }
}

__global__ void sigmoid_half2(const __half2* x, __half2* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float2 v = __half22float2(x[i]);
    v.x = 1.0f / (1.0f + expf(-v.x));
    v.y = 1.0f / (1.0f + expf(-v.y));
    y[i] = __float22half2_rn(v);
  }
}

// The random number of an element is a hash of its index.
__global__ void dropout(float* x, float* y, float p, unsigned seed, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned hash = (unsigned)i ^ seed;
  hash ^= hash >> 16;
  hash *= 0x7feb352du;
  hash ^= hash >> 15;
  hash *= 0x846ca68bu;
  hash ^= hash >> 16;
  float random = hash / 4294967296.0f;
  y[i] = random < p ? 0.0f : x[i] / (1.0f - p);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14);
  float *x = memory<float>(n), *y = memory<float>(n), *residual = memory<float>(n), *bias = memory<float>(CHANNELS);
  measure("gelu", [&] { gelu<<<n / 256, 256>>>(x, y, n); });
  measure("silu, few blocks", [&] { silu<<<264, 128>>>(x, y, n); });
  measure("leaky relu, float4", [&] { leaky_relu<<<n / 4 / 64, 64>>>((float4*)x, (float4*)y, 0.01f, n / 4); });
  measure("bias and residual", [&] { bias_residual<<<(n + 95) / 96, 96>>>(x, bias, residual, y, n, CHANNELS); });
  measure("sigmoid, half2", [&] { sigmoid_half2<<<n / 1024, 1024>>>((__half2*)x, (__half2*)y, n); });
  measure("dropout", [&] { dropout<<<n / 128, 128>>>(x, y, 0.1f, 1234u, n); });
}
