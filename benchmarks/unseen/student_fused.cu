// Several steps after a convolution or a linear layer in one kernel, as students fuse them: bias, scale, activations.
// sizes: 1 128 (images of 64 channels of 48 x 48 pixels)
#include "../micro/micro.h"

constexpr int CHANNELS = 64, SIDE = 48, PLANE = SIDE * SIDE, FEATURES = 1536;

// Bias, scale and sigmoid: the channel follows from the index.
__global__ void bias_scale_sigmoid(const float* input, const float* bias, const float* scale, float* output,
                                   int channels, int spatial, int total) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < total) {
    int c = (idx / spatial) % channels;
    float val = (input[idx] + bias[c]) * scale[c];
    output[idx] = 1.0f / (1.0f + expf(-val));
  }
}

__device__ float gelu_tanh(float x) { return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x))); }

// A residual, then GELU; four elements a thread and step.
__global__ void residual_gelu_float4(const float4* __restrict__ x, const float4* __restrict__ residual,
                                     float4* __restrict__ y, int n4) {
  const int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += stride) {
    const float4 a = x[i], b = residual[i];
    y[i] = make_float4(gelu_tanh(a.x + b.x), gelu_tanh(a.y + b.y), gelu_tanh(a.z + b.z), gelu_tanh(a.w + b.w));
  }
}

// The largest of windows of 2 x 2, kept between two limits; a grid of columns, rows and planes.
__global__ void maxpool_clamp(const float* input, float* output, float low, float high, int height, int width,
                              int pool) {
  int ox = blockIdx.x * blockDim.x + threadIdx.x, oy = blockIdx.y * blockDim.y + threadIdx.y, plane = blockIdx.z;
  int outH = height / pool, outW = width / pool;
  if (ox >= outW || oy >= outH) return;
  float best = -INFINITY;
  for (int i = 0; i < pool; i++)
    for (int j = 0; j < pool; j++) best = fmaxf(best, input[(plane * height + oy * pool + i) * width + ox * pool + j]);
  output[(plane * outH + oy) * outW + ox] = fminf(fmaxf(best, low), high);
}

// A scale, then the logarithm of the sum of exponentials over channels: a thread a pixel goes over them twice.
__global__ void scale_logsumexp(const float* input, float* output, float scale, int channels, int spatial, int pixels) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= pixels) return;
  int n = idx / spatial, s = idx % spatial;
  const float* in = input + n * channels * spatial + s;
  float largest = -INFINITY;
  for (int c = 0; c < channels; c++) largest = fmaxf(largest, in[c * spatial] * scale);
  float sum = 0.0f;
  for (int c = 0; c < channels; c++) sum += expf(in[c * spatial] * scale - largest);
  output[idx] = largest + logf(sum);
}

// Rows of a linear layer's result: the y index of the block is the row.
__global__ void tanh_bias_rows(float* x, float* bias, float* y, int features) {
  int f = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.y;
  if (f < features) y[row * features + f] = tanhf(x[row * features + f]) + bias[f];
}

// Hard-swish of values that each channel stretches and shifts; float4, in steps of the grid.
__global__ void channel_hardswish_float4(const float4* __restrict__ x, const float* __restrict__ gamma,
                                         const float* __restrict__ beta, float4* __restrict__ y, int n4) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
    const int c = i / (PLANE / 4) % CHANNELS;
    const float g = __ldg(gamma + c), b = __ldg(beta + c);
    float4 v = x[i];
    v.x = v.x * g + b, v.y = v.y * g + b, v.z = v.z * g + b, v.w = v.w * g + b;
    v.x *= fminf(fmaxf(v.x + 3.0f, 0.0f), 6.0f) / 6.0f;
    v.y *= fminf(fmaxf(v.y + 3.0f, 0.0f), 6.0f) / 6.0f;
    v.z *= fminf(fmaxf(v.z + 3.0f, 0.0f), 6.0f) / 6.0f;
    v.w *= fminf(fmaxf(v.w + 3.0f, 0.0f), 6.0f) / 6.0f;
    y[i] = v;
  }
}

// The smallest over channels, then tanh twice: a block has a piece of one image's rows.
__global__ void min_tanh_tanh(const float* __restrict__ input, float* __restrict__ output, int channels, int height,
                              int width) {
  const int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y, n = blockIdx.y;
  if (x >= width || y >= height) return;
  float least = input[(n * channels * height + y) * width + x];
  for (int c = 1; c < channels; c++) least = min(least, input[((n * channels + c) * height + y) * width + x]);
  output[(n * height + y) * width + x] = tanh(tanh(least));
}

// Subtract, tanh, subtract, and the average of windows of 2 x 2.
__global__ void subtract_tanh_avgpool(const float* x, float* y, float first, float second, int total) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= total) return;
  const int out = SIDE / 2;
  int ow = idx % out, oh = (idx / out) % out, plane = idx / (out * out);
  const float* in = x + plane * PLANE + 2 * oh * SIDE + 2 * ow;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int j = 0; j < 2; j++) sum += tanhf(in[i * SIDE + j] - first) - second;
  y[idx] = sum * 0.25f;
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), planes = images * CHANNELS, n = planes * PLANE;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n);
  float *bias = memory<float>(FEATURES), *scale = memory<float>(FEATURES);
  std::vector<float> values(n);
  unsigned state = 26;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bias, values.data(), FEATURES * sizeof(float), cudaMemcpyHostToDevice));
  measure("bias, scale, sigmoid",
          [&] { bias_scale_sigmoid<<<(n + 255) / 256, 256>>>(x, bias, scale, y, CHANNELS, PLANE, n); });
  measure("residual, GELU, float4",
          [&] { residual_gelu_float4<<<std::min(n / 1024, 2048), 256>>>((float4*)x, (float4*)z, (float4*)y, n / 4); });
  measure("max-pool, clamp",
          [&] { maxpool_clamp<<<dim3(2, 2, planes), dim3(16, 16)>>>(x, y, -1.0f, 1.0f, SIDE, SIDE, 2); });
  const int pixels = images * PLANE;
  measure("scale, log-sum-exp of channels",
          [&] { scale_logsumexp<<<(pixels + 255) / 256, 256>>>(x, y, 0.5f, CHANNELS, PLANE, pixels); });
  measure("tanh, bias, rows",
          [&] { tanh_bias_rows<<<dim3(FEATURES / 512, n / FEATURES), 512>>>(x, bias, y, FEATURES); });
  measure("hard-swish of channels, float4", [&] {
    channel_hardswish_float4<<<std::min(n / 512, 1056), 128>>>((float4*)x, scale, bias, (float4*)y, n / 4);
  });
  measure("smallest of channels, tanh twice",
          [&] { min_tanh_tanh<<<dim3(SIDE / 4, images), dim3(SIDE, 4)>>>(x, y, CHANNELS, SIDE, SIDE); });
  measure("subtract, tanh, average",
          [&] { subtract_tanh_avgpool<<<(n / 4 + 191) / 192, 192>>>(x, y, 0.5f, 0.2f, n / 4); });
}
