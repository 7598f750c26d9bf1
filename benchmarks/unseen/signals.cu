// Signals: finite and recursive filters, cosine, Walsh and Fourier transforms, wavelets, a signal with itself.
// sizes: 14 24 (log2 of the samples)
#include <cmath>

#include "../micro/micro.h"

constexpr int TAPS = 31, LONG_TAPS = 64, STEPS = 1024, LAGS = 32;

__constant__ float taps[TAPS];
__constant__ float cosines[64];

// 31 weights in constant memory, the samples from global memory.
__global__ void fir_constant(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0.0f;
  for (int k = 0; k < TAPS; k++)
    if (i - k >= 0) sum += taps[k] * x[i - k];
  y[i] = sum;
}

// 64 weights and the samples in shared memory, four results a thread.
__global__ void fir_shared(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y) {
  __shared__ float w[LONG_TAPS], samples[512 + LONG_TAPS];
  const int tid = threadIdx.x, first = blockIdx.x * 512 - LONG_TAPS;
  if (tid < LONG_TAPS) w[tid] = weight[tid];
  for (int i = tid; i < 512 + LONG_TAPS; i += 128) samples[i] = first + i >= 0 ? x[first + i] : 0.0f;
  __syncthreads();
  float sums[4] = {};
#pragma unroll 8
  for (int k = 0; k < LONG_TAPS; k++)
#pragma unroll
    for (int j = 0; j < 4; j++) sums[j] += w[k] * samples[LONG_TAPS + tid + 128 * j - k];
#pragma unroll
  for (int j = 0; j < 4; j++) y[blockIdx.x * 512 + tid + 128 * j] = sums[j];
}

// Two sections that remember: a thread a channel, step by step, the channels side by side.
__global__ void recursive_sections(const float* x, float* y, int channels) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  float a1 = 0.0f, a2 = 0.0f, b1 = 0.0f, b2 = 0.0f;
  for (int t = 0; t < STEPS; t++) {
    float in = x[t * channels + c];
    float middle = 0.2f * in + a1;
    a1 = 0.4f * in + 0.6f * middle + a2;
    a2 = 0.2f * in - 0.3f * middle;
    float out = 0.3f * middle + b1;
    b1 = 0.6f * middle + 0.4f * out + b2;
    b2 = 0.3f * middle - 0.2f * out;
    y[t * channels + c] = out;
  }
}

// The cosine transform of 8 x 8 pixels: a block of 64 threads a tile, first the rows, then the columns.
__global__ void dct_8x8(float* x, float* y, int width) {
  __shared__ float tile[8][8], rows[8][8];
  int u = threadIdx.x, v = threadIdx.y, at = (blockIdx.y * 8 + v) * width + blockIdx.x * 8 + u;
  tile[v][u] = x[at];
  __syncthreads();
  float sum = 0.0f;
  for (int k = 0; k < 8; k++) sum += tile[v][k] * cosines[u * 8 + k];
  rows[v][u] = sum;
  __syncthreads();
  sum = 0.0f;
  for (int k = 0; k < 8; k++) sum += rows[k][u] * cosines[v * 8 + k];
  y[at] = sum;
}

// Sums and differences of all 1024 samples of a block, in ten steps.
__global__ void walsh_hadamard(const float* x, float* y) {
  __shared__ float s[1024];
  int tid = threadIdx.x, first = blockIdx.x * 1024;
  s[tid] = x[first + tid];
  s[tid + 512] = x[first + tid + 512];
  __syncthreads();
  for (int half = 1; half < 1024; half *= 2) {
    int at = (tid / half) * 2 * half + tid % half;
    float a = s[at], b = s[at + half];
    s[at] = a + b;
    s[at + half] = a - b;
    __syncthreads();
  }
  y[first + tid] = s[tid];
  y[first + tid + 512] = s[tid + 512];
}

// One of many steps of Fourier's transform over everything, from one array to another.
__global__ void fourier_step(const float2* x, float2* y, int span, int half) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= half) return;
  int k = i & (span - 1);
  float sine, cosine;
  sincosf(-3.14159265f * k / span, &sine, &cosine);
  float2 a = x[i], b = x[i + half];
  float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
  int to = ((i - k) << 1) + k;
  y[to] = make_float2(a.x + turned.x, a.y + turned.y);
  y[to + span] = make_float2(a.x - turned.x, a.y - turned.y);
}

// 256 complex samples a block, all eight steps in shared memory.
__global__ void fourier_256(const float2* __restrict__ x, float2* __restrict__ y) {
  __shared__ float2 s[256];
  const int tid = threadIdx.x, first = blockIdx.x * 256;
  s[__brev(tid) >> 24] = x[first + tid];
  s[__brev(tid + 128) >> 24] = x[first + tid + 128];
  __syncthreads();
  for (int span = 1; span < 256; span *= 2) {
    const int k = tid & (span - 1), at = ((tid - k) << 1) + k;
    float sine, cosine;
    __sincosf(-3.14159265f * k / span, &sine, &cosine);
    const float2 a = s[at], b = s[at + span];
    const float2 turned = make_float2(b.x * cosine - b.y * sine, b.x * sine + b.y * cosine);
    s[at] = make_float2(a.x + turned.x, a.y + turned.y);
    s[at + span] = make_float2(a.x - turned.x, a.y - turned.y);
    __syncthreads();
  }
  y[first + tid] = s[tid];
  y[first + tid + 128] = s[tid + 128];
}

// Averages of pairs to the first half, differences to the second.
__global__ void haar_step(const float2* x, float* y, int half) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= half) return;
  float2 v = x[i];
  y[i] = (v.x + v.y) * 0.70710678f;
  y[half + i] = (v.x - v.y) * 0.70710678f;
}

// A signal times itself a little later, for 32 delays: a block a delay and part.
__global__ void with_itself(const float* x, float* sums, int part) {
  __shared__ float partial[256];
  int tid = threadIdx.x, lag = blockIdx.x, first = blockIdx.y * part;
  float sum = 0.0f;
  for (int i = first + tid; i < first + part; i += 256) sum += x[i] * x[i + lag];
  partial[tid] = sum;
  __syncthreads();
  for (int s = 128; s > 0; s /= 2) {
    if (tid < s) partial[tid] += partial[tid + s];
    __syncthreads();
  }
  if (tid == 0) atomicAdd(&sums[lag], partial[0]);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14), width = std::min(n / 64, 4096), channels = n / STEPS;
  float *x = memory<float>(n + LAGS), *y = memory<float>(n), *weight = memory<float>(LONG_TAPS);
  std::vector<float> values(n), table(64, 0.5f);
  unsigned state = 19;
  for (float& v : values) v = ((state = state * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  for (int i = 0; i < 64; i++)
    table[i] = (i < 8 ? 0.35355339f : 0.5f) * cosf((2 * (i % 8) + 1) * (i / 8) * 0.19634954f);
  CHECK(cudaMemcpy(x, values.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(taps, table.data(), TAPS * sizeof(float)));
  CHECK(cudaMemcpyToSymbol(cosines, table.data(), 64 * sizeof(float)));
  measure("31 taps, constant", [&] { fir_constant<<<n / 256, 256>>>(x, y, n); });
  measure("64 taps, shared", [&] { fir_shared<<<n / 512, 128>>>(x, weight, y); });
  measure("recursive", [&] { recursive_sections<<<(channels + 31) / 32, 32>>>(x, y, channels); });
  measure("cosines of 8 x 8", [&] { dct_8x8<<<dim3(width / 8, n / width / 8), dim3(8, 8)>>>(x, y, width); });
  measure("Walsh and Hadamard", [&] { walsh_hadamard<<<n / 1024, 512>>>(x, y); });
  measure("Fourier, a step", [&] { fourier_step<<<n / 4 / 256, 256>>>((float2*)x, (float2*)y, 64, n / 4); });
  measure("Fourier, 256", [&] { fourier_256<<<n / 2 / 256, 128>>>((float2*)x, (float2*)y); });
  measure("Haar", [&] { haar_step<<<n / 2 / 128, 128>>>((float2*)x, y, n / 2); });
  const int part = std::min(n, 1 << 16);
  measure("with itself", [&] { with_itself<<<dim3(LAGS, n / part), 256>>>(x, weight, part); });
}
