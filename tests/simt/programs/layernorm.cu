/*
LayerNorm: each row less its mean, over its standard deviation, times gamma, plus beta.

    nvcc -std=c++17 -arch=native layernorm.cu -o layernorm && ./layernorm
    python -m simt run layernorm.cu

version 1: one thread a row: neighbouring threads read addresses a whole row apart
version 2: one block a row: partial sums in dynamic shared memory, added up in a tree; two passes over the row
version 3: one warp a row, by cooperative groups: sums by shuffles, no barrier of the block, float4 loads
*/

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    cudaError_t status_ = (call);                                                                       \
    if (status_ != cudaSuccess) {                                                                       \
      fprintf(stderr, "[%s:%d] %s\n", __FILE__, __LINE__, cudaGetErrorString(status_));                 \
      exit(EXIT_FAILURE);                                                                               \
    }                                                                                                   \
  } while (0)

struct Shape {
  int rows, width;
  float epsilon;
};

// ---- CPU reference, in double precision ----

void layernorm_cpu(const float* x, const float* gamma, const float* beta, float* y, Shape shape) {
  for (int row = 0; row < shape.rows; row++, x += shape.width, y += shape.width) {
    double mean = 0, variance = 0;
    for (int i = 0; i < shape.width; i++) mean += x[i];
    mean /= shape.width;
    for (int i = 0; i < shape.width; i++) variance += (x[i] - mean) * (x[i] - mean);
    variance /= shape.width;
    for (int i = 0; i < shape.width; i++) y[i] = (x[i] - mean) / std::sqrt(variance + shape.epsilon) * gamma[i] + beta[i];
  }
}

// ---- kernels ----

__global__ void layernorm1(const float* x, const float* gamma, const float* beta, float* y, Shape shape) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= shape.rows) return;
  x += row * shape.width;
  y += row * shape.width;
  float mean = 0, variance = 0;
  for (int i = 0; i < shape.width; i++) mean += x[i];
  mean /= shape.width;
  for (int i = 0; i < shape.width; i++) variance += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(variance / shape.width + shape.epsilon);
  for (int i = 0; i < shape.width; i++) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}

// Every thread gets the sum; `partial` holds one float a thread, and is free again afterwards.
__device__ float block_sum(float value, float* partial) {
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride > 0; stride /= 2) {
    if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
    __syncthreads();
  }
  float sum = partial[0];
  __syncthreads();
  return sum;
}

__global__ void layernorm2(const float* x, const float* gamma, const float* beta, float* y, Shape shape) {
  extern __shared__ float partial[];
  x += blockIdx.x * shape.width;
  y += blockIdx.x * shape.width;
  float sum = 0, squares = 0;
  for (int i = threadIdx.x; i < shape.width; i += blockDim.x) sum += x[i];
  float mean = block_sum(sum, partial) / shape.width;
  for (int i = threadIdx.x; i < shape.width; i += blockDim.x) squares += (x[i] - mean) * (x[i] - mean);
  float scale = rsqrtf(block_sum(squares, partial) / shape.width + shape.epsilon);
  for (int i = threadIdx.x; i < shape.width; i += blockDim.x) y[i] = (x[i] - mean) * scale * gamma[i] + beta[i];
}

__global__ void layernorm3(const float4* x, const float4* gamma, const float4* beta, float4* y, Shape shape) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= shape.rows) return;      // the whole warp returns
  int width = shape.width / 4;
  x += row * width;
  y += row * width;
  float sum = 0, squares = 0;
  for (int i = warp.thread_rank(); i < width; i += warp.size()) sum += x[i].x + x[i].y + x[i].z + x[i].w;
  float mean = cg::reduce(warp, sum, cg::plus<float>()) / shape.width;
  for (int i = warp.thread_rank(); i < width; i += warp.size()) {
    float4 v = x[i];
    squares += (v.x - mean) * (v.x - mean) + (v.y - mean) * (v.y - mean) + (v.z - mean) * (v.z - mean) + (v.w - mean) * (v.w - mean);
  }
  float scale = rsqrtf(cg::reduce(warp, squares, cg::plus<float>()) / shape.width + shape.epsilon);
  for (int i = warp.thread_rank(); i < width; i += warp.size()) {
    float4 v = x[i], g = gamma[i], b = beta[i];
    y[i] = make_float4((v.x - mean) * scale * g.x + b.x, (v.y - mean) * scale * g.y + b.y, (v.z - mean) * scale * g.z + b.z,
                       (v.w - mean) * scale * g.w + b.w);
  }
}

// ---- host ----

float* to_device(const std::vector<float>& values) {
  float* d = nullptr;
  CHECK(cudaMalloc(&d, values.size() * sizeof(float)));
  CHECK(cudaMemcpy(d, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
  return d;
}

int main() {
  bool all = true;
  for (Shape shape : {Shape{1, 4, 1e-5f}, Shape{61, 256, 1e-5f}, Shape{200, 100, 1e-5f}}) {
    const int n = shape.rows * shape.width;
    std::vector<float> x(n), gamma(shape.width), beta(shape.width), y(n), expected(n);
    for (int i = 0; i < n; i++) x[i] = (i * 7919 % 2001) / 500.0f + (float)(i / shape.width % 10);      // rows differ in their mean
    for (int i = 0; i < shape.width; i++) gamma[i] = 1 + i % 5 * 0.25f, beta[i] = i % 3 - 1.0f;
    layernorm_cpu(x.data(), gamma.data(), beta.data(), expected.data(), shape);
    float *d_x = to_device(x), *d_gamma = to_device(gamma), *d_beta = to_device(beta), *d_y = to_device(y);
    for (int version = 1; version <= 3; version++) {
      CHECK(cudaMemset(d_y, 0, n * sizeof(float)));
      if (version == 1) layernorm1<<<(shape.rows + 31) / 32, 32>>>(d_x, d_gamma, d_beta, d_y, shape);
      if (version == 2) layernorm2<<<shape.rows, 64, 64 * sizeof(float)>>>(d_x, d_gamma, d_beta, d_y, shape);
      if (version == 3)
        layernorm3<<<(shape.rows + 3) / 4, 128>>>((const float4*)d_x, (const float4*)d_gamma, (const float4*)d_beta, (float4*)d_y, shape);
      CHECK(cudaGetLastError());
      CHECK(cudaMemcpy(y.data(), d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
      double sum = 0, squares = 0;
      bool ok = true;
      for (int i = 0; i < n; i++) {
        ok = ok && std::fabs(y[i] - expected[i]) <= 1e-4f;
        sum += y[i];
        squares += y[i] * y[i];
      }
      printf("version %d, %3d x %-3d %s  mean %.3f, mean square %.3f\n", version, shape.rows, shape.width, ok ? "ok" : "WRONG", sum / n, squares / n);
      all = all && ok;
    }
    CHECK(cudaFree(d_x));
    CHECK(cudaFree(d_gamma));
    CHECK(cudaFree(d_beta));
    CHECK(cudaFree(d_y));
  }
  return all ? 0 : 1;
}
