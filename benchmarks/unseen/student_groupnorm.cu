// Group, instance and layer normalisation of images (NCHW) as students write them: a thread or a block a group.
// sizes: 4 256 (images of 64 channels of 32 x 32 pixels)
#include "../micro/micro.h"

constexpr int CHANNELS = 64, PLANE = 32 * 32, GROUPS = 8, PER_GROUP = CHANNELS / GROUPS, GROUP_SIZE = PER_GROUP * PLANE;

// One thread does a whole group: mean, variance, result.
__global__ void groupnorm_thread(const float* x, const float* gamma, const float* beta, float* y, int N, int C, int HW,
                                 int G, float eps) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx >= N * G) return;
  int n = idx / G, g = idx % G, channels = C / G;
  int count = channels * HW, start = (n * C + g * channels) * HW;
  float mean = 0.0f;
  for (int i = 0; i < count; i++) mean += x[start + i];
  mean /= count;
  float var = 0.0f;
  for (int i = 0; i < count; i++) var += (x[start + i] - mean) * (x[start + i] - mean);
  var /= count;
  for (int c = 0; c < channels; c++)
    for (int i = 0; i < HW; i++)
      y[start + c * HW + i] =
          (x[start + c * HW + i] - mean) / sqrtf(var + eps) * gamma[g * channels + c] + beta[g * channels + c];
}

// A block a group; two trees in shared memory, the mean before the variance.
__global__ void groupnorm_block(const float* x, const float* gamma, const float* beta, float* y, int C, int HW, int G,
                                float eps) {
  __shared__ float sdata[256];
  int n = blockIdx.x / G, g = blockIdx.x % G, tid = threadIdx.x;
  int channels = C / G, size = channels * HW;
  int offset = n * C * HW + g * size;
  float sum = 0.0f;
  for (int i = tid; i < size; i += blockDim.x) sum += x[offset + i];
  sdata[tid] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  float mean = sdata[0] / size;
  __syncthreads();
  float sq = 0.0f;
  for (int i = tid; i < size; i += blockDim.x) {
    float d = x[offset + i] - mean;
    sq += d * d;
  }
  sdata[tid] = sq;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  float inv_std = rsqrtf(sdata[0] / size + eps);
  for (int i = tid; i < size; i += blockDim.x) {
    int c = g * channels + i / HW;
    y[offset + i] = (x[offset + i] - mean) * inv_std * gamma[c] + beta[c];
  }
}

// Sum and sum of squares at once, four elements a load, warps by shuffles.
__global__ void groupnorm_float4(const float4* __restrict__ x, const float* __restrict__ gamma,
                                 const float* __restrict__ beta, float4* __restrict__ y, float eps) {
  __shared__ float sums[16], squares[16];
  __shared__ float mean, scale;
  const int group = blockIdx.x % GROUPS, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const float4* in = x + (size_t)blockIdx.x * (GROUP_SIZE / 4);
  float4* out = y + (size_t)blockIdx.x * (GROUP_SIZE / 4);
  float sum = 0.0f, square = 0.0f;
  for (int i = threadIdx.x; i < GROUP_SIZE / 4; i += blockDim.x) {
    const float4 v = in[i];
    sum += v.x + v.y + v.z + v.w;
    square += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    sum += __shfl_down_sync(0xffffffff, sum, offset);
    square += __shfl_down_sync(0xffffffff, square, offset);
  }
  if (lane == 0) sums[warp] = sum, squares[warp] = square;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0.0f, total_square = 0.0f;
    for (int w = 0; w < blockDim.x / 32; w++) total += sums[w], total_square += squares[w];
    mean = total / GROUP_SIZE;
    scale = rsqrtf(total_square / GROUP_SIZE - mean * mean + eps);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < GROUP_SIZE / 4; i += blockDim.x) {
    const int c = group * PER_GROUP + i / (PLANE / 4);
    const float a = gamma[c] * scale, b = beta[c] - mean * a;
    const float4 v = in[i];
    out[i] = make_float4(v.x * a + b, v.y * a + b, v.z * a + b, v.w * a + b);
  }
}

// A block a plane. Each thread runs Welford's method; the first one merges what all of them have.
__global__ void instancenorm_welford(const float* x, float* y, int HW, float eps) {
  __shared__ float means[128], m2s[128];
  __shared__ int counts[128];
  const float* in = x + blockIdx.x * HW;
  float mean = 0.0f, m2 = 0.0f;
  int count = 0;
  for (int i = threadIdx.x; i < HW; i += blockDim.x) {
    count++;
    float delta = in[i] - mean;
    mean += delta / count;
    m2 += delta * (in[i] - mean);
  }
  means[threadIdx.x] = mean;
  m2s[threadIdx.x] = m2;
  counts[threadIdx.x] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < blockDim.x; t++) {
      int total = counts[0] + counts[t];
      float delta = means[t] - means[0];
      means[0] += delta * counts[t] / total;
      m2s[0] += m2s[t] + delta * delta * counts[0] * counts[t] / total;
      counts[0] = total;
    }
  }
  __syncthreads();
  float inv = rsqrtf(m2s[0] / HW + eps);
  for (int i = threadIdx.x; i < HW; i += blockDim.x) y[blockIdx.x * HW + i] = (in[i] - means[0]) * inv;
}

// A thread a plane, with sum and sum of squares in one pass.
__global__ void instancenorm_thread(const float* x, const float* weight, const float* bias, float* y, int planes, int C,
                                    int HW) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= planes) return;
  float sum = 0.0f, sum_sq = 0.0f;
  for (int i = 0; i < HW; i++) {
    float v = x[p * HW + i];
    sum += v;
    sum_sq += v * v;
  }
  float mean = sum / HW, var = sum_sq / HW - mean * mean;
  float scale = weight[p % C] / sqrtf(var + 1e-5f), shift = bias[p % C];
  for (int i = 0; i < HW; i++) y[p * HW + i] = (x[p * HW + i] - mean) * scale + shift;
}

// Over channels, rows and columns together: a block an image, atomics in shared memory, a weight an element.
__global__ void layernorm_image(const float* x, const float* weight, const float* bias, float* y, int size) {
  __shared__ float s_sum, s_sq;
  if (threadIdx.x == 0) {
    s_sum = 0.0f;
    s_sq = 0.0f;
  }
  __syncthreads();
  const float* in = x + (size_t)blockIdx.x * size;
  float* out = y + (size_t)blockIdx.x * size;
  float sum = 0.0f, sq = 0.0f;
  for (int i = threadIdx.x; i < size; i += blockDim.x) {
    sum += in[i];
    sq += in[i] * in[i];
  }
  atomicAdd(&s_sum, sum);
  atomicAdd(&s_sq, sq);
  __syncthreads();
  float mean = s_sum / size;
  float inv_std = 1.0f / sqrtf(s_sq / size - mean * mean + 1e-5f);
  for (int i = threadIdx.x; i < size; i += blockDim.x) out[i] = (in[i] - mean) * inv_std * weight[i] + bias[i];
}

// The first of two kernels: mean and reciprocal deviation of each group.
__global__ void group_moments(const float* x, float* mean, float* rstd) {
  __shared__ float sum[512], sq[512];
  int tid = threadIdx.x;
  sum[tid] = 0.0f;
  sq[tid] = 0.0f;
  for (int i = tid; i < GROUP_SIZE; i += blockDim.x) {
    float v = x[(size_t)blockIdx.x * GROUP_SIZE + i];
    sum[tid] += v;
    sq[tid] += v * v;
  }
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (tid < s) {
      sum[tid] += sum[tid + s];
      sq[tid] += sq[tid + s];
    }
    __syncthreads();
  }
  if (tid == 0) {
    float m = sum[0] / GROUP_SIZE;
    mean[blockIdx.x] = m;
    rstd[blockIdx.x] = rsqrtf(sq[0] / GROUP_SIZE - m * m + 1e-5f);
  }
}

// The second: a thread an element looks up what belongs to it.
__global__ void group_apply(const float* x, const float* mean, const float* rstd, const float* gamma, const float* beta,
                            float* y, int C, int HW, int G, int total) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= total) return;
  int c = (i / HW) % C, n = i / (C * HW), group = n * G + c / (C / G);
  y[i] = (x[i] - mean[group]) * rstd[group] * gamma[c] + beta[c];
}

int main(int argc, char** argv) {
  const int images = size_of_run(argc, argv, 4), n = images * CHANNELS * PLANE, groups = images * GROUPS;
  float *x = memory<float>(n), *y = memory<float>(n), *mean = memory<float>(groups), *rstd = memory<float>(groups);
  float *weight = memory<float>(CHANNELS * PLANE), *bias = memory<float>(CHANNELS * PLANE);
  std::vector<float> values(n);
  unsigned state = 24;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 0.8f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  const int pairs = images * CHANNELS / 2;  // groups of two channels, so that there are more threads
  measure("groups, a thread each", [&] {
    groupnorm_thread<<<(pairs + 31) / 32, 32>>>(x, weight, bias, y, images, CHANNELS, PLANE, CHANNELS / 2, 1e-5f);
  });
  measure("groups, a block each",
          [&] { groupnorm_block<<<groups, 256>>>(x, weight, bias, y, CHANNELS, PLANE, GROUPS, 1e-5f); });
  measure("groups, float4", [&] { groupnorm_float4<<<groups, 512>>>((float4*)x, weight, bias, (float4*)y, 1e-5f); });
  measure("planes, Welford", [&] { instancenorm_welford<<<images * CHANNELS, 128>>>(x, y, PLANE, 1e-5f); });
  const int planes = images * CHANNELS;
  measure("planes, a thread each",
          [&] { instancenorm_thread<<<(planes + 63) / 64, 64>>>(x, weight, bias, y, planes, CHANNELS, PLANE); });
  measure("images, a block each", [&] { layernorm_image<<<images, 1024>>>(x, weight, bias, y, CHANNELS * PLANE); });
  measure("moments of groups", [&] { group_moments<<<groups, 512>>>(x, mean, rstd); });
  measure("moments applied",
          [&] { group_apply<<<(n + 255) / 256, 256>>>(x, mean, rstd, weight, bias, y, CHANNELS, PLANE, GROUPS, n); });
}
