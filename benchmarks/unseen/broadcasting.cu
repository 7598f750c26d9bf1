// Elementwise chains in which one operand is smaller: a value a channel, a row, a column, an image, or any strides.
// sizes: 1 64 (images of 64 x 64 x 64)
#include "../micro/micro.h"

constexpr int CHANNELS = 64, PLANE = 64 * 64;

__global__ void bias_hardswish(float* x, float* bias, float* y, int channels, int plane, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  float v = x[i] + bias[(i / plane) % channels];
  y[i] = v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f;
}

// The channels lie last.
__global__ void bias_mish(const float* __restrict__ x, const float* __restrict__ bias, float* __restrict__ y,
                          int total) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += gridDim.x * blockDim.x) {
    const float v = x[i] + bias[i % CHANNELS];
    y[i] = v * tanhf(log1pf(expf(v)));
  }
}

// A block a plane: its channel's slope is read once.
__global__ void prelu(const float4* __restrict__ x, const float* __restrict__ slope, float4* __restrict__ y) {
  const float s = slope[blockIdx.x % CHANNELS];
  x += (size_t)blockIdx.x * (PLANE / 4);
  y += (size_t)blockIdx.x * (PLANE / 4);
#pragma unroll 4
  for (int i = threadIdx.x; i < PLANE / 4; i += 256) {
    float4 v = x[i];
    v.x = v.x > 0.0f ? v.x : s * v.x;
    v.y = v.y > 0.0f ? v.y : s * v.y;
    v.z = v.z > 0.0f ? v.z : s * v.z;
    v.w = v.w > 0.0f ? v.w : s * v.w;
    y[i] = v;
  }
}

// Each pair of a row's and a column's value: a distance, and a weight that falls with it.
__global__ void pairs(const float* rows, const float* columns, float* y, int width) {
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  float d = rows[row] - columns[column];
  y[(size_t)row * width + column] = expf(-0.5f * d * d);
}

struct Operand {
  size_t strides[4];
};

// Any two operands of four dimensions; a stride of zero repeats.
__global__ void multiply_general(const float* a, Operand stride_a, const float* b, Operand stride_b, float* y,
                                 size_t size1, size_t size2, size_t size3, size_t total) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i >= total) return;
  size_t at[4] = {i / (size1 * size2 * size3), i / (size2 * size3) % size1, i / size3 % size2, i % size3};
  size_t from_a = 0, from_b = 0;
  for (int d = 0; d < 4; d++) {
    from_a += at[d] * stride_a.strides[d];
    from_b += at[d] * stride_b.strides[d];
  }
  y[i] = a[from_a] * b[from_b];
}

// Squeeze and excite: a gate a plane, then the residual and a rectifier.
__global__ void gate_and_add(float* x, float* gate, float* residual, float* y, int total) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
  if (i >= total) return;
  for (int k = i; k < i + 2; k++) {
    float g = 1.0f / (1.0f + expf(-gate[k / PLANE]));
    y[k] = fmaxf(g * x[k] + residual[k], 0.0f);
  }
}

// A byte says which of two values an element gets; one of the two is the row's.
__global__ void choose(const unsigned char* mask, const float* x, const float* filling, float* y, int width) {
  int row = blockIdx.x;
  for (int i = threadIdx.x; i < width; i += blockDim.x) {
    size_t at = (size_t)row * width + i;
    y[at] = mask[at] ? x[at] : filling[row];
  }
}

// Interpolation between two images by a weight for each pixel, which all channels share.
__global__ void blend(const float* a, const float* b, const float* weight, float* y) {
  int pixel = blockIdx.x * blockDim.x + threadIdx.x, channel = blockIdx.y, image = blockIdx.z;
  int i = (image * CHANNELS + channel) * PLANE + pixel;
  float w = weight[image * PLANE + pixel];
  y[i] = a[i] + w * (b[i] - a[i]);
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), planes = images * CHANNELS, total = planes * PLANE;
  float *x = memory<float>(total), *other = memory<float>(total), *y = memory<float>(total);
  float *bias = memory<float>(CHANNELS), *gate = memory<float>(planes), *weight = memory<float>(images * PLANE);
  auto* mask = memory<unsigned char>(total);
  std::vector<unsigned char> bits(total);
  unsigned random = 5;
  for (auto& b : bits) b = (random = random * 1664525u + 1013904223u) >> 31;
  CHECK(cudaMemcpy(mask, bits.data(), total, cudaMemcpyHostToDevice));
  measure("bias and hardswish", [&] { bias_hardswish<<<total / 256, 256>>>(x, bias, y, CHANNELS, PLANE, total); });
  measure("bias and mish", [&] { bias_mish<<<792, 256>>>(x, bias, y, total); });
  measure("PReLU", [&] { prelu<<<planes, 256>>>((float4*)x, bias, (float4*)y); });
  measure("pairs", [&] { pairs<<<dim3(PLANE / 64, planes / 4), dim3(64, 4)>>>(x, other, y, PLANE); });
  const Operand full = {{(size_t)CHANNELS * PLANE, (size_t)PLANE, 64, 1}}, by_row = {{0, 64, 1, 0}};
  measure("any strides",
          [&] { multiply_general<<<total / 512, 512>>>(x, full, other, by_row, y, CHANNELS, 64, 64, total); });
  measure("gate and add", [&] { gate_and_add<<<total / 2 / 128, 128>>>(x, gate, other, y, total); });
  measure("choose", [&] { choose<<<planes, 192>>>(mask, x, gate, y, PLANE); });
  measure("blend", [&] { blend<<<dim3(PLANE / 512, CHANNELS, images), 512>>>(x, other, weight, y); });
}
