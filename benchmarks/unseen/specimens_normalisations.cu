// Normalisations as students hand them in: groups, rows, planes, channels; by shuffles, atomics, registers, one kernel.
// sizes: 4 384 (images of 48 channels of 28 x 28 pixels)
#include "../micro/micro.h"

constexpr int CHANNELS = 48, PIXELS = 28 * 28, GROUPS = 8, PER_GROUP = CHANNELS / GROUPS, ROW = 1024;

__device__ void merge_welford(float& mean, float& m2, float& count, float mean_b, float m2_b, float count_b) {
  float total = count + count_b;
  if (total == 0.0f) return;
  float delta = mean_b - mean;
  mean += delta * count_b / total;
  m2 += m2_b + delta * delta * count * count_b / total;
  count = total;
}

// A block a group: Welford's method in every thread, merged by shuffles and then through shared memory.
__global__ void groupnorm_welford_shuffles(const float* __restrict__ x, const float* __restrict__ gamma,
                                           const float* __restrict__ beta, float* __restrict__ y, float eps) {
  __shared__ float means[4], m2s[4], counts[4];
  constexpr int SIZE = PER_GROUP * PIXELS;
  x += (size_t)blockIdx.x * SIZE;
  y += (size_t)blockIdx.x * SIZE;
  float mean = 0.0f, m2 = 0.0f, count = 0.0f;
  for (int i = threadIdx.x; i < SIZE; i += blockDim.x) {
    const float v = x[i], delta = v - mean;
    count += 1.0f;
    mean += delta / count;
    m2 += delta * (v - mean);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    const float mean_b = __shfl_down_sync(0xffffffff, mean, offset);
    const float m2_b = __shfl_down_sync(0xffffffff, m2, offset);
    const float count_b = __shfl_down_sync(0xffffffff, count, offset);
    merge_welford(mean, m2, count, mean_b, m2_b, count_b);
  }
  if (threadIdx.x % 32 == 0) {
    means[threadIdx.x / 32] = mean;
    m2s[threadIdx.x / 32] = m2;
    counts[threadIdx.x / 32] = count;
  }
  __syncthreads();
  mean = means[0], m2 = m2s[0], count = counts[0];
  for (int w = 1; w < 4; w++) merge_welford(mean, m2, count, means[w], m2s[w], counts[w]);
  const float rstd = rsqrtf(m2 / SIZE + eps);
  const int first = blockIdx.x % GROUPS * PER_GROUP;
  for (int i = threadIdx.x; i < SIZE; i += blockDim.x) {
    const int c = first + i / PIXELS;
    y[i] = (x[i] - mean) * rstd * gamma[c] + beta[c];
  }
}

// A block a plane adds its sum and its sum of squares to those of the group.
__global__ void group_sums_atomic(const float* x, float* sums, float* squares) {
  __shared__ float s_sum[256], s_square[256];
  int plane = blockIdx.x, tid = threadIdx.x;
  float sum = 0.0f, square = 0.0f;
  for (int i = tid; i < PIXELS; i += blockDim.x) {
    float v = x[plane * PIXELS + i];
    sum += v;
    square += v * v;
  }
  s_sum[tid] = sum;
  s_square[tid] = square;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (tid < half) {
      s_sum[tid] += s_sum[tid + half];
      s_square[tid] += s_square[tid + half];
    }
    __syncthreads();
  }
  if (tid == 0) {
    atomicAdd(&sums[plane / PER_GROUP], s_sum[0]);
    atomicAdd(&squares[plane / PER_GROUP], s_square[0]);
  }
}

// A block a row of 1024: each thread keeps its four elements in registers, so that the row is read once.
__global__ void layernorm_registers(const float4* x, const float4* gamma, const float4* beta, float4* y) {
  __shared__ float partial[8];
  const int row = blockIdx.x, tid = threadIdx.x, lane = tid & 31, warp = tid >> 5;
  float4 v = x[row * (ROW / 4) + tid];
  float sum = v.x + v.y + v.z + v.w;
  for (int mask = 16; mask > 0; mask >>= 1) sum += __shfl_xor_sync(0xffffffff, sum, mask);
  if (lane == 0) partial[warp] = sum;
  __syncthreads();
  float mean = 0.0f;
  for (int w = 0; w < 8; w++) mean += partial[w];
  mean /= ROW;
  __syncthreads();
  v.x -= mean, v.y -= mean, v.z -= mean, v.w -= mean;
  float square = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  for (int mask = 16; mask > 0; mask >>= 1) square += __shfl_xor_sync(0xffffffff, square, mask);
  if (lane == 0) partial[warp] = square;
  __syncthreads();
  float variance = 0.0f;
  for (int w = 0; w < 8; w++) variance += partial[w];
  const float rstd = rsqrtf(variance / ROW + 1e-5f);
  const float4 g = gamma[tid], b = beta[tid];
  v = make_float4(v.x * rstd * g.x + b.x, v.y * rstd * g.y + b.y, v.z * rstd * g.z + b.z, v.w * rstd * g.w + b.w);
  y[row * (ROW / 4) + tid] = v;
}

// A warp a plane goes over it three times.
__global__ void instancenorm_warp(const float* x, float* y, int planes, float eps) {
  int plane = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (plane >= planes) return;
  const float* in = x + plane * PIXELS;
  float* out = y + plane * PIXELS;
  float mean = 0.0f;
  for (int i = lane; i < PIXELS; i += 32) mean += in[i];
  for (int mask = 16; mask > 0; mask /= 2) mean += __shfl_xor_sync(0xffffffff, mean, mask);
  mean /= PIXELS;
  float variance = 0.0f;
  for (int i = lane; i < PIXELS; i += 32) variance += (in[i] - mean) * (in[i] - mean);
  for (int mask = 16; mask > 0; mask /= 2) variance += __shfl_xor_sync(0xffffffff, variance, mask);
  float rstd = 1.0f / sqrtf(variance / PIXELS + eps);
  for (int i = lane; i < PIXELS; i += 32) out[i] = (in[i] - mean) * rstd;
}

// With running statistics; pixels, channels and images are the three dimensions of the grid.
__global__ void batchnorm_inference(const float* x, const float* mean, const float* var, const float* gamma,
                                    const float* beta, float* y, int C, int pixels, float eps) {
  int p = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, n = blockIdx.z;
  if (p >= pixels) return;
  int i = (n * C + c) * pixels + p;
  y[i] = gamma[c] * (x[i] - mean[c]) / sqrtf(var[c] + eps) + beta[c];
}

// A block a channel does everything: statistics over all images, then the result.
__global__ void batchnorm_training(const float* x, const float* gamma, const float* beta, float* y, int N) {
  __shared__ float s_sum[1024], s_square[1024];
  int c = blockIdx.x, tid = threadIdx.x;
  float sum = 0.0f, square = 0.0f;
  for (int n = 0; n < N; n++) {
    const float* plane = x + (n * CHANNELS + c) * PIXELS;
    for (int p = tid; p < PIXELS; p += 1024) {
      sum += plane[p];
      square += plane[p] * plane[p];
    }
  }
  s_sum[tid] = sum;
  s_square[tid] = square;
  __syncthreads();
  for (int s = 512; s > 0; s >>= 1) {
    if (tid < s) {
      s_sum[tid] += s_sum[tid + s];
      s_square[tid] += s_square[tid + s];
    }
    __syncthreads();
  }
  float mean = s_sum[0] / (N * PIXELS), var = s_square[0] / (N * PIXELS) - mean * mean;
  float scale = gamma[c] * rsqrtf(var + 1e-5f), shift = beta[c] - mean * scale;
  for (int i = tid; i < N * PIXELS; i += 1024) {
    int at = (i / PIXELS * CHANNELS + c) * PIXELS + i % PIXELS;
    y[at] = x[at] * scale + shift;
  }
}

// Over the channels of each pixel: a thread a pixel.
__global__ void layernorm_pixel(const float* __restrict__ x, const float* __restrict__ gamma,
                                const float* __restrict__ beta, float* __restrict__ y, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  const int base = i / PIXELS * CHANNELS * PIXELS + i % PIXELS;
  float mean = 0.0f, variance = 0.0f;
  for (int c = 0; c < CHANNELS; c++) mean += x[base + c * PIXELS];
  mean /= CHANNELS;
  for (int c = 0; c < CHANNELS; c++) {
    const float d = x[base + c * PIXELS] - mean;
    variance += d * d;
  }
  const float rstd = rsqrtf(variance / CHANNELS + 1e-6f);
  for (int c = 0; c < CHANNELS; c++) y[base + c * PIXELS] = (x[base + c * PIXELS] - mean) * rstd * gamma[c] + beta[c];
}

// Groups, then SiLU. Blocks of 192 threads: a tree that rounds up where it halves.
__device__ float sum_of_192(float value) {
  __shared__ float partial[192];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int n = 192; n > 1;) {
    const int half = (n + 1) / 2;
    if (threadIdx.x + half < n) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
    n = half;
  }
  const float total = partial[0];
  __syncthreads();
  return total;
}

__global__ void groupnorm_silu_192(const float* x, const float* gamma, const float* beta, float* y, int C, int pixels,
                                   int groups) {
  int n = blockIdx.y, g = blockIdx.x, channels = C / groups, size = channels * pixels;
  const float* in = x + (n * groups + g) * size;
  float* out = y + (n * groups + g) * size;
  float sum = 0.0f;
  for (int i = threadIdx.x; i < size; i += 192) sum += in[i];
  float mean = sum_of_192(sum) / size;
  float square = 0.0f;
  for (int i = threadIdx.x; i < size; i += 192) square += (in[i] - mean) * (in[i] - mean);
  float rstd = rsqrtf(sum_of_192(square) / size + 1e-5f);
  for (int c = 0; c < channels; c++)
    for (int p = threadIdx.x; p < pixels; p += 192) {
      float v = (in[c * pixels + p] - mean) * rstd * gamma[g * channels + c] + beta[g * channels + c];
      out[c * pixels + p] = v / (1.0f + expf(-v));
    }
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 4), planes = images * CHANNELS, n = planes * PIXELS;
  float *x = memory<float>(n), *y = memory<float>(n), *gamma = memory<float>(ROW), *beta = memory<float>(ROW);
  float *mean = memory<float>(CHANNELS), *var = memory<float>(CHANNELS);
  float *sums = memory<float>(images * GROUPS), *squares = memory<float>(images * GROUPS);
  std::vector<float> values(n);
  unsigned state = 42;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 0.7f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(gamma, values.data(), ROW * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(beta, values.data() + ROW, ROW * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(mean, values.data() + 5, CHANNELS * sizeof(float), cudaMemcpyHostToDevice));
  measure("groups, Welford, shuffles",
          [&] { groupnorm_welford_shuffles<<<images * GROUPS, 128>>>(x, gamma, beta, y, 1e-5f); });
  measure("sums of groups, atomics", [&] { group_sums_atomic<<<planes, 256>>>(x, sums, squares); });
  measure("rows of 1024 in registers",
          [&] { layernorm_registers<<<n / ROW, ROW / 4>>>((float4*)x, (float4*)gamma, (float4*)beta, (float4*)y); });
  measure("planes, a warp each", [&] { instancenorm_warp<<<(planes + 7) / 8, 256>>>(x, y, planes, 1e-5f); });
  measure("batch norm, inference", [&] {
    batchnorm_inference<<<dim3((PIXELS + 255) / 256, CHANNELS, images), 256>>>(x, mean, var, gamma, beta, y, CHANNELS,
                                                                               PIXELS, 1e-5f);
  });
  measure("batch norm, a block a channel", [&] { batchnorm_training<<<CHANNELS, 1024>>>(x, gamma, beta, y, images); });
  measure("channels of a pixel, a thread each",
          [&] { layernorm_pixel<<<(images * PIXELS + 127) / 128, 128>>>(x, gamma, beta, y, images * PIXELS); });
  measure("groups, SiLU, 192 threads",
          [&] { groupnorm_silu_192<<<dim3(GROUPS, images), 192>>>(x, gamma, beta, y, CHANNELS, PIXELS, GROUPS); });
}
