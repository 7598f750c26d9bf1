// Rows, pixels and groups scaled by what they measure: L1, L2, root mean square, Welford, smallest to largest, a gain.
// sizes: 32 12800 (rows of 1536 floats)
#include "../micro/micro.h"

constexpr int WIDTH = 1536, CHANNELS = 48, PIXELS = 1024, GROUP = 6;

// A block a row, a tree in shared memory that the caller sizes.
__global__ void l2_normalise(float* x, float* y, int width) {
  extern __shared__ float part[];
  int tid = threadIdx.x;
  float* row = x + blockIdx.x * width;
  float sum = 0.0f;
  for (int i = tid; i < width; i += blockDim.x) sum += row[i] * row[i];
  part[tid] = sum;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) part[tid] += part[tid + s];
    __syncthreads();
  }
  float length = sqrtf(part[0]) + 1e-12f;
  for (int i = tid; i < width; i += blockDim.x) y[blockIdx.x * width + i] = row[i] / length;
}

// A thread a row, which it reads twice.
__global__ void l1_normalise(float* x, float* y, int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = 0; i < width; i++) sum += fabsf(x[row * width + i]);
  for (int i = 0; i < width; i++) y[row * width + i] = x[row * width + i] / sum;
}

// Rows of weights scaled to a length that is learnt: a warp a row, which stays in registers.
__global__ void scale_to_gain(const float4* __restrict__ v, const float* __restrict__ gain, float4* __restrict__ w,
                              int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float4 own[WIDTH / 128];
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < WIDTH / 128; k++) {
    own[k] = v[row * (WIDTH / 4) + k * 32 + lane];
    sum += own[k].x * own[k].x + own[k].y * own[k].y + own[k].z * own[k].z + own[k].w * own[k].w;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  const float scale = gain[row] * rsqrtf(sum);
#pragma unroll
  for (int k = 0; k < WIDTH / 128; k++)
    w[row * (WIDTH / 4) + k * 32 + lane] =
        make_float4(own[k].x * scale, own[k].y * scale, own[k].z * scale, own[k].w * scale);
}

// Over the channels of an image: a thread a pixel walks from plane to plane.
__global__ void rms_over_channels(float* x, float* y, float epsilon, int pixels) {
  int p = blockIdx.x * blockDim.x + threadIdx.x;
  if (p >= pixels) return;
  int image = p / PIXELS, at = image * CHANNELS * PIXELS + p % PIXELS;
  float sum = 0.0f;
  for (int c = 0; c < CHANNELS; c++) {
    float v = x[at + c * PIXELS];
    sum += v * v;
  }
  float rms = sqrtf(sum / CHANNELS + epsilon);
  for (int c = 0; c < CHANNELS; c++) y[at + c * PIXELS] = x[at + c * PIXELS] / rms;
}

// Mean and spread of each group of channels, for the next kernel: a warp a group.
__global__ void group_statistics(const float* x, float2* statistics, int groups) {
  int group = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (group >= groups) return;
  float sum = 0.0f, squares = 0.0f;
  for (int i = lane; i < GROUP * PIXELS; i += 32) {
    float v = x[group * GROUP * PIXELS + i];
    sum += v;
    squares += v * v;
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
    squares += __shfl_xor_sync(0xffffffff, squares, offset);
  }
  float mean = sum / (GROUP * PIXELS);
  if (lane == 0) statistics[group] = make_float2(mean, rsqrtf(squares / (GROUP * PIXELS) - mean * mean + 1e-5f));
}

// Running means of Welford, one pass: a warp a row, merged by shuffles.
__global__ void layer_norm_welford(const float* __restrict__ x, float* __restrict__ y, int rows) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const float* in = x + (size_t)row * WIDTH;
  float mean = 0.0f, squares = 0.0f, count = 0.0f;
  for (int i = threadIdx.x; i < WIDTH; i += 32) {
    count += 1.0f;
    const float change = in[i] - mean;
    mean += change / count;
    squares += change * (in[i] - mean);
  }
  for (int offset = 1; offset < 32; offset *= 2) {
    const float other = __shfl_xor_sync(0xffffffff, mean, offset);
    const float other_squares = __shfl_xor_sync(0xffffffff, squares, offset);
    const float change = other - mean;
    squares += other_squares + change * change * count * 0.5f;
    mean = 0.5f * (mean + other);
    count *= 2.0f;
  }
  const float scale = rsqrtf(squares / WIDTH + 1e-5f);
  for (int i = threadIdx.x; i < WIDTH; i += 32) y[(size_t)row * WIDTH + i] = (in[i] - mean) * scale;
}

// Each row stretched so that it goes from 0 to 1; a block a row, the row in registers.
__global__ void stretch_rows(const float* x, float* y) {
  __shared__ float lows[16], highs[16];
  const int tid = threadIdx.x;
  float v[3];
  float low = INFINITY, high = -INFINITY;
#pragma unroll
  for (int k = 0; k < 3; k++) {
    v[k] = x[blockIdx.x * WIDTH + k * 512 + tid];
    low = fminf(low, v[k]);
    high = fmaxf(high, v[k]);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    low = fminf(low, __shfl_xor_sync(0xffffffff, low, offset));
    high = fmaxf(high, __shfl_xor_sync(0xffffffff, high, offset));
  }
  if (tid % 32 == 0) lows[tid / 32] = low, highs[tid / 32] = high;
  __syncthreads();
  for (int w = 0; w < 16; w++) {
    low = fminf(low, lows[w]);
    high = fmaxf(high, highs[w]);
  }
#pragma unroll
  for (int k = 0; k < 3; k++) y[blockIdx.x * WIDTH + k * 512 + tid] = (v[k] - low) / (high - low + 1e-6f);
}

int main(int argc, char** argv) {
  const int rows = size_of_run(argc, argv, 32), n = rows * WIDTH, planes = n / PIXELS, groups = planes / GROUP;
  float *x = memory<float>(n), *y = memory<float>(n), *few = memory<float>(n / 64);
  std::vector<float> values(n);
  unsigned state = 12;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 0.9f;
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  measure("L2, tree", [&] { l2_normalise<<<rows, 256, 256 * sizeof(float)>>>(x, y, WIDTH); });
  measure("L1, a thread a row", [&] { l1_normalise<<<(rows + 63) / 64, 64>>>(x, y, rows, WIDTH); });
  measure("scaled to a gain", [&] { scale_to_gain<<<rows / 4, 128>>>((float4*)x, few, (float4*)y, rows); });
  const int pixels = planes / CHANNELS * PIXELS;
  measure("rms over channels", [&] { rms_over_channels<<<pixels / 128, 128>>>(x, y, 1e-5f, pixels); });
  measure("group statistics", [&] { group_statistics<<<(groups + 3) / 4, 128>>>(x, (float2*)few, groups); });
  measure("layer norm, Welford", [&] { layer_norm_welford<<<rows / 8, dim3(32, 8)>>>(x, y, rows); });
  measure("stretched rows", [&] { stretch_rows<<<rows, 512>>>(x, y); });
}
