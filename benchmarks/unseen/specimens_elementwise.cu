// Elementwise kernels as students hand them in: by channel, channels last, halves, in place, gated, cast, unrolled.
// sizes: 1 112 (images of 48 channels of 64 x 64 pixels)
#include <cuda_fp16.h>

#include "../micro/micro.h"

constexpr int CHANNELS = 48, PIXELS = 64 * 64;

__device__ float sigmoid(float v) { return 1.0f / (1.0f + __expf(-v)); }

// Four elements a thread, and one by one what is left over.
__global__ void bias_scale_sigmoid_tail(const float* x, const float* bias, const float* scale, float* y, int C,
                                        int pixels, int total) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (first + 3 < total) {
    float4 v = *(const float4*)(x + first);
    int c = first / pixels % C;
    float b = bias[c], s = scale[c];
    v.x = sigmoid((v.x + b) * s);
    v.y = sigmoid((v.y + b) * s);
    v.z = sigmoid((v.z + b) * s);
    v.w = sigmoid((v.w + b) * s);
    *(float4*)(y + first) = v;
  } else {
    for (int i = first; i < total; i++) {
      int c = i / pixels % C;
      y[i] = sigmoid((x[i] + bias[c]) * scale[c]);
    }
  }
}

// Channels last: the channel is what is left of the index.
__global__ void bias_scale_sigmoid_last(const float* __restrict__ x, const float* __restrict__ bias,
                                        const float* __restrict__ scale, float* __restrict__ y, int C, int total) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const int c = i % C;
    y[i] = 1.0f / (1.0f + expf(-(x[i] + bias[c]) * scale[c]));
  }
}

// With the error function, on pairs of halves.
__global__ void gelu_erf_half2(const __half2* x, __half2* y, int n2) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n2) return;
  float2 v = __half22float2(x[i]);
  v.x = 0.5f * v.x * (1.0f + erff(v.x * 0.70710678f));
  v.y = 0.5f * v.y * (1.0f + erff(v.y * 0.70710678f));
  y[i] = __float22half2_rn(v);
}

// In place, two elements a step.
__global__ void silu_in_place_float2(float2* x, int n2) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n2; i += stride) {
    float2 v = x[i];
    v.x = v.x / (1.0f + expf(-v.x));
    v.y = v.y / (1.0f + expf(-v.y));
    x[i] = v;
  }
}

// Scaled by channel and cut; pixels, channels and images are the dimensions of the grid.
__global__ void scale_clamp_3d(const float* x, const float* scale, float* y, int pixels, float low, float high) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  int c = blockIdx.y, n = blockIdx.z;
  if (p < pixels) {
    int i = (n * gridDim.y + c) * pixels + p;
    float v = x[i] * scale[c];
    if (v < low) v = low;
    if (v > high) v = high;
    y[i] = v;
  }
}

// A gate for each plane of each image, a residual, then ReLU.
__global__ void gate_residual_relu(const float* x, const float* gate, const float* residual, float* y, int pixels,
                                   int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  y[i] = fmaxf(x[i] * gate[i / pixels] + residual[i], 0.0f);
}

// Four floats are read and four halves are written at once.
__global__ void cast_to_half4(const float4* __restrict__ x, uint2* __restrict__ y, int n4) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n4) return;
  const float4 v = x[i];
  __half2 pair[2] = {__floats2half2_rn(v.x, v.y), __floats2half2_rn(v.z, v.w)};
  y[i] = make_uint2(*(unsigned*)&pair[0], *(unsigned*)&pair[1]);
}

// Softsign; each thread takes four elements that lie a block apart.
__global__ void softsign_unrolled(const float* x, float* y, int n) {
  int first = blockIdx.x * blockDim.x * 4 + threadIdx.x;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    int i = first + k * blockDim.x;
    if (i < n) y[i] = x[i] / (1.0f + fabsf(x[i]));
  }
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), planes = images * CHANNELS, n = planes * PIXELS;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n), *gate = memory<float>(planes);
  float *bias = memory<float>(CHANNELS), *scale = memory<float>(CHANNELS);
  std::vector<float> values(n);
  unsigned state = 44;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bias, values.data(), CHANNELS * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(scale, values.data() + CHANNELS, CHANNELS * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(gate, values.data() + 11, planes * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("bias, scale, sigmoid, float4 and a tail",
          [&] { bias_scale_sigmoid_tail<<<(n / 4 + 127) / 128, 128>>>(x, bias, scale, y, CHANNELS, PIXELS, n); });
  measure("bias, scale, sigmoid, channels last",
          [&] { bias_scale_sigmoid_last<<<std::min(n / 256, 2112), 256>>>(x, bias, scale, y, CHANNELS, n); });
  measure("scale, clamp, grid of planes",
          [&] { scale_clamp_3d<<<dim3(PIXELS / 512, CHANNELS, images), 512>>>(x, scale, y, PIXELS, -1.0f, 1.0f); });
  measure("gate, residual, ReLU", [&] { gate_residual_relu<<<(n + 255) / 256, 256>>>(x, gate, z, y, PIXELS, n); });
  measure("float to half, four a thread",
          [&] { cast_to_half4<<<(n / 4 + 255) / 256, 256>>>((float4*)x, (uint2*)y, n / 4); });
  measure("GELU of halves",
          [&] { gelu_erf_half2<<<(n / 2 + 511) / 512, 512>>>((__half2*)y, (__half2*)y + n / 2, n / 2); });
  measure("SiLU in place, float2", [&] { silu_in_place_float2<<<std::min(n / 512, 1320), 128>>>((float2*)z, n / 2); });
  measure("softsign, four a thread", [&] { softsign_unrolled<<<(n + 4095) / 4096, 1024>>>(x, y, n); });
}
