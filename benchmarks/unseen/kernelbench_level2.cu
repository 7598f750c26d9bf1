// What follows a convolution or a linear layer: scale, tanh, norms, smallest of channels, softmax, pooling, mish.
// sizes: 1 128 (images of 32 channels of 62 x 62 pixels)
#include "../micro/micro.h"

constexpr int CHANNELS = 32, PIXELS = 62 * 62, FEATURES = 1024;

// Scaled, tanh, times a value a channel, sigmoid; a row of blocks a plane.
__global__ void scale_tanh_sigmoid(const float* x, const float* bias, float scale, float* y, int C, int pixels) {
  int p = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
  if (p >= pixels) return;
  float v = tanhf(x[plane * pixels + p] * scale) * bias[plane % C];
  y[plane * pixels + p] = 1.0f / (1.0f + expf(-v));
}

// Rows of a linear layer: groups of 64 features, a warp a group, two features a lane; then cut to [-1, 1].
__global__ void groupnorm_hardtanh_rows(const float* __restrict__ x, const float* __restrict__ gamma,
                                        const float* __restrict__ beta, float* __restrict__ y, int groups) {
  const int group = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (group >= groups) return;
  const int base = group * 64, feature = base % FEATURES;
  const float a = x[base + lane], b = x[base + lane + 32];
  float sum = a + b, square = a * a + b * b;
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    sum += __shfl_xor_sync(0xffffffff, sum, mask);
    square += __shfl_xor_sync(0xffffffff, square, mask);
  }
  const float mean = sum / 64, rstd = rsqrtf(square / 64 - mean * mean + 1e-5f);
  const float u = (a - mean) * rstd * gamma[feature + lane] + beta[feature + lane];
  const float v = (b - mean) * rstd * gamma[feature + lane + 32] + beta[feature + lane + 32];
  y[base + lane] = fminf(fmaxf(u, -1.0f), 1.0f);
  y[base + lane + 32] = fminf(fmaxf(v, -1.0f), 1.0f);
}

// The smallest over channels, then tanh: eight threads share the channels of a pixel.
__global__ void min_channels_tanh(const float* x, float* y, int C, int pixels) {
  __shared__ float least[8][32];
  int p = blockIdx.x * 32 + threadIdx.x, n = blockIdx.y;
  float v = INFINITY;
  if (p < pixels)
    for (int c = threadIdx.y; c < C; c += 8) v = fminf(v, x[(n * C + c) * pixels + p]);
  least[threadIdx.y][threadIdx.x] = v;
  __syncthreads();
  if (threadIdx.y == 0 && p < pixels) {
    for (int k = 1; k < 8; k++) v = fminf(v, least[k][threadIdx.x]);
    y[n * pixels + p] = tanhf(v);
  }
}

// Softmax over channels, bias, scale, sigmoid: a thread a pixel, its channels in registers.
__global__ void softmax_channels_sigmoid(const float* __restrict__ x, const float* __restrict__ bias,
                                         float* __restrict__ y, float scale, int total) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int base = i / PIXELS * CHANNELS * PIXELS + i % PIXELS;
  float v[CHANNELS], top = -INFINITY, sum = 0.0f;
#pragma unroll
  for (int c = 0; c < CHANNELS; c++) {
    v[c] = x[base + c * PIXELS];
    top = fmaxf(top, v[c]);
  }
#pragma unroll
  for (int c = 0; c < CHANNELS; c++) {
    v[c] = __expf(v[c] - top);
    sum += v[c];
  }
#pragma unroll
  for (int c = 0; c < CHANNELS; c++) y[base + c * PIXELS] = 1.0f / (1.0f + __expf(-(v[c] / sum + bias[c]) * scale));
}

// The mean of each plane by a warp, bias, and the log-sum-exp of the 32 means: a block an image.
__global__ void mean_logsumexp(const float* x, const float* bias, float* y) {
  __shared__ float means[CHANNELS];
  int lane = threadIdx.x % 32, c = threadIdx.x / 32;
  const float* plane = x + (blockIdx.x * CHANNELS + c) * PIXELS;
  float sum = 0.0f;
  for (int i = lane; i < PIXELS; i += 32) sum += plane[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) means[c] = sum / PIXELS + bias[c];
  __syncthreads();
  if (threadIdx.x == 0) {
    float top = means[0], total = 0.0f;
    for (int k = 1; k < CHANNELS; k++) top = fmaxf(top, means[k]);
    for (int k = 0; k < CHANNELS; k++) total += expf(means[k] - top);
    y[blockIdx.x] = (top + logf(total)) * 10.0f;
  }
}

// ReLU of the sum with a residual, and a bias a channel; four pixels a thread, planes along y.
__global__ void residual_relu_bias_float4(const float4* x, const float4* residual, const float* bias, float4* y) {
  const int p = blockIdx.x * blockDim.x + threadIdx.x, plane = blockIdx.y;
  if (p >= PIXELS / 4) return;
  const int i = plane * (PIXELS / 4) + p;
  const float b = bias[plane % CHANNELS];
  float4 u = x[i], v = residual[i];
  y[i] = make_float4(fmaxf(u.x + v.x, 0.0f) + b, fmaxf(u.y + v.y, 0.0f) + b, fmaxf(u.z + v.z, 0.0f) + b,
                     fmaxf(u.w + v.w, 0.0f) + b);
}

// Batch norm with running statistics, then mish.
__global__ void batchnorm_mish(const float* x, const float* mean, const float* var, const float* gamma,
                               const float* beta, float* y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int c = i / PIXELS % CHANNELS;
  float v = (x[i] - mean[c]) * rsqrtf(var[c] + 1e-5f) * gamma[c] + beta[c];
  float softplus = v > 20.0f ? v : log1pf(expf(v));
  y[i] = v * tanhf(softplus);
}

// Swish, half of it, cut, tanh, cut; the elements of a row in steps of the block.
__global__ void swish_clamp_tanh_rows(const float* x, float* y, int features) {
  const float* in = x + blockIdx.x * features;
  float* out = y + blockIdx.x * features;
  for (int f = threadIdx.x; f < features; f += blockDim.x) {
    float v = in[f];
    v = v / (1.0f + expf(-v)) / 2.0f;
    v = fmaxf(-1.0f, fminf(1.0f, v));
    v = tanhf(v);
    out[f] = fmaxf(-1.0f, fminf(1.0f, v));
  }
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 1), planes = images * CHANNELS, n = planes * PIXELS;
  float *x = memory<float>(n), *z = memory<float>(n), *y = memory<float>(n);
  float *bias = memory<float>(FEATURES), *gamma = memory<float>(FEATURES);
  std::vector<float> values(n);
  unsigned state = 46;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 4194304.0f - 2.0f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(bias, values.data(), FEATURES * sizeof(float), cudaMemcpyHostToDevice));
  std::reverse(values.begin(), values.end());
  CHECK(cudaMemcpy(z, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("scale, tanh, channel, sigmoid",
          [&] { scale_tanh_sigmoid<<<dim3((PIXELS + 255) / 256, planes), 256>>>(x, bias, 2.0f, y, CHANNELS, PIXELS); });
  const int groups = n / FEATURES * (FEATURES / 64);
  measure("groups of 64 features, cut",
          [&] { groupnorm_hardtanh_rows<<<(groups + 7) / 8, 256>>>(x, gamma, bias, y, groups); });
  measure("smallest of channels, tanh, eight threads",
          [&] { min_channels_tanh<<<dim3((PIXELS + 31) / 32, images), dim3(32, 8)>>>(x, y, CHANNELS, PIXELS); });
  const int pixels = images * PIXELS;
  measure("softmax of channels, sigmoid",
          [&] { softmax_channels_sigmoid<<<(pixels + 127) / 128, 128>>>(x, bias, y, 2.0f, pixels); });
  measure("means of planes, log-sum-exp", [&] { mean_logsumexp<<<images, 1024>>>(x, bias, y); });
  measure("residual, ReLU, bias, float4", [&] {
    residual_relu_bias_float4<<<dim3((PIXELS / 4 + 127) / 128, planes), 128>>>((float4*)x, (float4*)z, bias,
                                                                               (float4*)y);
  });
  measure("batch norm, mish",
          [&] { batchnorm_mish<<<(n + 511) / 512, 512>>>(x, bias, gamma, gamma + CHANNELS, bias + CHANNELS, y, n); });
  measure("swish, cut, tanh, cut, rows", [&] { swish_clamp_tanh_rows<<<n / FEATURES, 256>>>(x, y, FEATURES); });
}
