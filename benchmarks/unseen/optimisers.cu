// Steps of optimisers over one long list of weights, and the norm by which gradients are clipped.
// sizes: 14 24 (log2 of the weights)
#include "../micro/micro.h"

#include <cuda_fp16.h>

__global__ void momentum(float* weight, float* gradient, float* speed, float rate, float decay, float friction, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float g = gradient[i] + decay * weight[i];
    speed[i] = friction * speed[i] + g;
    weight[i] = weight[i] - rate * speed[i];
  }
}

__global__ void rms_prop(float* __restrict__ weight, const float* __restrict__ gradient, float* __restrict__ squares,
                         float rate, float alpha, long n) {
  for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < n; i += (long)gridDim.x * blockDim.x) {
    const float g = gradient[i], s = alpha * squares[i] + (1.0f - alpha) * g * g;
    squares[i] = s;
    weight[i] -= rate * g / (sqrtf(s) + 1e-8f);
  }
}

__device__ void adamw_one(float& w, float g, float& m, float& v, float rate, float correction1, float correction2) {
  m = 0.9f * m + 0.1f * g;
  v = 0.999f * v + 0.001f * g * g;
  w = w * (1.0f - rate * 0.01f) - rate * (m * correction1) / (sqrtf(v * correction2) + 1e-8f);
}

// Four weights a thread.
__global__ void adamw(float4* weight, const float4* gradient, float4* m, float4* v, float rate, float correction1,
                      float correction2, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 w = weight[i], g = gradient[i], first = m[i], second = v[i];
  adamw_one(w.x, g.x, first.x, second.x, rate, correction1, correction2);
  adamw_one(w.y, g.y, first.y, second.y, rate, correction1, correction2);
  adamw_one(w.z, g.z, first.z, second.z, rate, correction1, correction2);
  adamw_one(w.w, g.w, first.w, second.w, rate, correction1, correction2);
  weight[i] = w;
  m[i] = first;
  v[i] = second;
}

// Only the sign of the step counts.
__global__ void lion(float* weight, const float* gradient, float* m, float rate, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float step = 0.9f * m[i] + 0.1f * gradient[i];
  if (step > 0)
    weight[i] -= rate;
  else if (step < 0)
    weight[i] += rate;
  m[i] = 0.99f * m[i] + 0.01f * gradient[i];
}

// Gradients of 16 bits, weights of 32, and a copy of the weights of 16 for the next step.
__global__ void adagrad_mixed(float* weight, const __half* gradient, float* squares, __half* copy, float rate,
                              float unscale, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float g = __half2float(gradient[i]) * unscale;
  float s = squares[i] + g * g;
  float w = weight[i] - rate * g * rsqrtf(s + 1e-10f);
  squares[i] = s;
  weight[i] = w;
  copy[i] = __float2half(w);
}

// A sum of squares for each block.
template <int THREADS>
__global__ void squares_of_blocks(const float* gradient, float* sums, int n) {
  __shared__ float part[THREADS];
  float sum = 0.0f;
  for (int i = blockIdx.x * THREADS * 4 + threadIdx.x; i < min(n, (int)(blockIdx.x + 1) * THREADS * 4); i += THREADS)
    sum += gradient[i] * gradient[i];
  part[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll
  for (int s = THREADS / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

// One block adds up what the many found.
__global__ void add_up(const float* sums, float* norm, int n) {
  __shared__ float part[1024];
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += 1024) sum += sums[i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int s = 512; s > 0; s /= 2) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) *norm = sqrtf(part[0]);
}

// The norm is read by every thread.
__global__ void clip(float* gradient, const float* norm, float most, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = *norm > most ? gradient[i] * most / *norm : gradient[i];
}

// A slow copy of the weights follows them; each thread takes eight that lie together.
__global__ void follow(float* slow, const float* weight, float share, int n) {
  int first = (blockIdx.x * blockDim.x + threadIdx.x) * 8;
  for (int i = first; i < first + 8 && i < n; i++) slow[i] += share * (weight[i] - slow[i]);
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 14), blocks = n / 256;
  float *w = memory<float>(n), *g = memory<float>(n), *m = memory<float>(n), *v = memory<float>(n);
  float *sums = memory<float>(blocks), *norm = memory<float>(1);
  __half *narrow = memory<__half>(n), *copy = memory<__half>(n);
  measure("momentum", [&] { momentum<<<n / 256, 256>>>(w, g, m, 1e-3f, 1e-4f, 0.9f, n); });
  measure("RMSprop", [&] { rms_prop<<<396, 512>>>(w, g, v, 1e-3f, 0.99f, n); });
  measure("AdamW", [&] {
    adamw<<<n / 4 / 128, 128>>>((float4*)w, (float4*)g, (float4*)m, (float4*)v, 1e-3f, 1.5f, 9.0f, n / 4);
  });
  measure("Lion", [&] { lion<<<n / 512, 512>>>(w, g, m, 1e-4f, n); });
  measure("Adagrad of mixed precision", [&] { adagrad_mixed<<<n / 256, 256>>>(w, narrow, v, copy, 1e-3f, 0.5f, n); });
  measure("squares of blocks", [&] { squares_of_blocks<64><<<blocks, 64>>>(g, sums, n); });
  measure("add up", [&] { add_up<<<1, 1024>>>(sums, norm, blocks); });
  measure("clip", [&] { clip<<<n / 1024, 1024>>>(g, norm, 1.0f, m, n); });
  measure("follow", [&] { follow<<<n / 8 / 64, 64>>>(v, w, 0.01f, n); });
}
