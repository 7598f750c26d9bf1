// title: a program in the style of the first CUDA books, with old names that still compile
// features: deprecated_names, dynamic_shared_memory, integer_intrinsics, error_handling

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <device_launch_parameters.h>
#include <vector_types.h>
#include <vector_functions.h>

#ifndef MAX
#define MAX(a, b) ((a > b) ? a : b)
#endif
#define CUDA_ERROR_CHECK
#define CudaSafeCall(err) __cudaSafeCall(err, __FILE__, __LINE__)
#define CudaCheckError() __cudaCheckError(__FILE__, __LINE__)
#define IMUL(a, b) __mul24(a, b)

inline void __cudaSafeCall(cudaError err, const char *file, const int line) {
#ifdef CUDA_ERROR_CHECK
  if (cudaSuccess != err) {
    fprintf(stderr, "cudaSafeCall() failed at %s:%i : %s\n", file, line, cudaGetErrorString(err));
    exit(-1);
  }
#endif
  return;
}

inline void __cudaCheckError(const char *file, const int line) {
#ifdef CUDA_ERROR_CHECK
  cudaError err = cudaGetLastError();
  if (cudaSuccess != err) {
    fprintf(stderr, "cudaCheckError() failed at %s:%i : %s\n", file, line, cudaGetErrorString(err));
    exit(-1);
  }
#endif
  return;
}

__device__ float simple_hash(uint3 position) {
  const unsigned int mixed = IMUL(position.x, 73) ^ IMUL(position.y, 19) ^ __umul24(position.z, 83);
  return (float)(mixed & 255u);
}

__global__ void fill(float *g_odata, uint2 dims) {
  const unsigned int x = IMUL(blockIdx.x, blockDim.x) + threadIdx.x;
  const unsigned int y = IMUL(blockIdx.y, blockDim.y) + threadIdx.y;
  if (x >= dims.x || y >= dims.y) return;
  g_odata[IMUL(y, dims.x) + x] = simple_hash(make_uint3(x, y, x + y));
}

// float1 ... float4 and friends, saturation, rounding, reinterpretation
__global__ void intrinsics(const float *in, float4 *out, int n) {
  const int tid = IMUL(blockDim.x, blockIdx.x) + threadIdx.x;
  const int THREAD_N = IMUL(blockDim.x, gridDim.x);
  for (int i = tid; i < n; i += THREAD_N) {
    float x = in[i];
    float4 r;
    r.x = __saturatef(x / 128.0f - 0.5f);
    r.y = (float)(__float2int_rn(x * 0.3f) + __float2int_rd(-x) + __float2int_rz(x * 0.7f));
    r.z = (float)(__popc((int)x) + __clz((int)x + 1) + __ffs((int)x) + __brev((unsigned)x) % 7);
    r.w = __int_as_float(__float_as_int(x) & 0x7fffffff) + (float)__sad((int)x, 100, 3u);
    r.w += (float)__mulhi((int)((unsigned)x << 24), 1 << 10);
    out[i] = r;
  }
}

__global__ void reduce3(float *g_idata, float *g_odata, unsigned int n) {
  extern __shared__ float sdata[];
  unsigned int tid = threadIdx.x;
  unsigned int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x;
  float mySum = (i < n) ? g_idata[i] : 0;
  if (i + blockDim.x < n) mySum += g_idata[i + blockDim.x];
  sdata[tid] = mySum;
  __syncthreads();
  for (unsigned int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (tid < s) sdata[tid] = mySum = mySum + sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) g_odata[blockIdx.x] = mySum;
}

static int count_bits(unsigned v) {
  int c = 0;
  for (; v; v >>= 1) c += v & 1;
  return c;
}

int main(int argc, char **argv) {
  uint2 dims = make_uint2(90, 41);
  const unsigned int n = dims.x * dims.y;
  unsigned int mem_size = sizeof(float) * n;
  int deviceCount = 0, errors = 0;
  CudaSafeCall(cudaGetDeviceCount(&deviceCount));
  assert(deviceCount > 0);

  float *d_idata, *d_odata, *h_data = (float *)malloc(mem_size);
  float4 *d_four, *h_four = (float4 *)malloc(n * sizeof(float4));
  CudaSafeCall(cudaMalloc((void **)&d_idata, mem_size));
  CudaSafeCall(cudaMalloc((void **)&d_odata, mem_size));
  CudaSafeCall(cudaMalloc((void **)&d_four, n * sizeof(float4)));

  dim3 threads = dim3(16, 8);
  dim3 grid = dim3((dims.x + 15) / 16, (dims.y + 7) / 8);
  fill<<<grid, threads>>>(d_idata, dims);
  CudaCheckError();
  CudaSafeCall(cudaMemcpy(h_data, d_idata, mem_size, cudaMemcpyDeviceToHost));
  double expected = 0;
  for (unsigned int y = 0; y < dims.y; ++y)
    for (unsigned int x = 0; x < dims.x; ++x) {
      unsigned int e = (x * 73 ^ y * 19 ^ (x + y) * 83) & 255;
      if (h_data[y * dims.x + x] != (float)e) ++errors;
      expected += e;
    }
  printf("filled: %d errors\n", errors);

  intrinsics<<<5, 96>>>(d_idata, d_four, n);
  CudaCheckError();
  CudaSafeCall(cudaMemcpy(h_four, d_four, n * sizeof(float4), cudaMemcpyDeviceToHost));
  double sums[4] = {0, 0, 0, 0};
  for (unsigned int i = 0; i < n; ++i) {
    double x = h_data[i], s = x / 128 - 0.5;
    int v = (int)x, clz = 32, ffs = 0;
    while (clz > 0 && (v + 1) >> (32 - clz)) --clz;
    for (int b = 31; b >= 0; --b) ffs = v >> b & 1 ? b + 1 : ffs;
    unsigned reversed = 0;
    for (int b = 0; b < 32; ++b) reversed |= (unsigned)(v >> b & 1) << (31 - b);
    if (fabs(h_four[i].x - (s < 0 ? 0 : s > 1 ? 1 : s)) > 1e-6) ++errors;
    if (fabs(h_four[i].y - (rint(x * 0.3) + floor(-x) + trunc(x * 0.7))) > 1.001) ++errors;
    if (h_four[i].z != count_bits(v) + clz + ffs + reversed % 7) ++errors;
    if (h_four[i].w != x + abs(v - 100) + 3 + (double)((long long)(int)((unsigned)v << 24) * 1024 >> 32)) ++errors;
    sums[0] += h_four[i].x;
    sums[2] += h_four[i].z;
    sums[3] += h_four[i].w;
  }
  printf("intrinsics: %.2f %.0f %.0f, %d errors\n", sums[0], sums[2], sums[3], errors);

  unsigned int s = n, threadsPerBlock = 128;
  float *in = d_idata, *out = d_odata;
  while (s > 1) {
    unsigned int blocks = (s + threadsPerBlock * 2 - 1) / (threadsPerBlock * 2);
    reduce3<<<blocks, threadsPerBlock, threadsPerBlock * sizeof(float)>>>(in, out, s);
    CudaCheckError();
    float *t = in;
    in = out;
    out = t;
    s = blocks;
  }
  float sum;
  CudaSafeCall(cudaMemcpy(&sum, in, sizeof(float), cudaMemcpyDeviceToHost));
  CudaSafeCall(cudaDeviceSynchronize());
  printf("sum %.0f\n", sum);
  if (sum != expected) ++errors;

  CudaSafeCall(cudaFree(d_idata));
  CudaSafeCall(cudaFree(d_odata));
  CudaSafeCall(cudaFree(d_four));
  free(h_data);
  free(h_four);
  printf("%s\n", MAX(errors, 0) ? "FAILED" : "PASSED");
  return errors ? 1 : 0;
}
