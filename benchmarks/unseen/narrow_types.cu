// Numbers of 16 and of 8 bits: arithmetic in half precision, conversions, quantisation, sums in single precision.
// sizes: 15 25 (log2 of the elements)
#include "../micro/micro.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

constexpr int WIDTH = 2048;

__global__ void axpy_half(__half* x, __half* y, __half a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma(a, x[i], y[i]);
}

__global__ void bias_gelu_half2(const __half2* x, const __half2* bias, __half2* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float2 v = __half22float2(__hadd2(x[i], bias[i % (WIDTH / 2)]));
  v.x *= 0.5f * (1.0f + erff(v.x * 0.70710678f));
  v.y *= 0.5f * (1.0f + erff(v.y * 0.70710678f));
  y[i] = __float22half2_rn(v);
}

__global__ void bfloat16_to_float(__nv_bfloat16* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __bfloat162float(x[i]);
}

__global__ void float_to_bfloat16(const float4* __restrict__ x, __nv_bfloat162* __restrict__ y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float4 v = x[i];
    y[2 * i] = __floats2bfloat162_rn(v.x, v.y);
    y[2 * i + 1] = __floats2bfloat162_rn(v.z, v.w);
  }
}

// A residual connection in bfloat16: every operation converts there and back.
__global__ void residual_bfloat16(const __nv_bfloat16* x, const __nv_bfloat16* skip, __nv_bfloat16* y, float scale,
                                  size_t n) {
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2bfloat16(__bfloat162float(skip[i]) + scale * __bfloat162float(x[i]));
}

// A scale for each row; four elements a thread.
__global__ void quantise(const float4* x, const float* scale, char4* y) {
  int i = blockIdx.y * (WIDTH / 4) + blockIdx.x * blockDim.x + threadIdx.x;
  float s = 1.0f / scale[blockIdx.y];
  float4 v = x[i];
  int a = __float2int_rn(v.x * s), b = __float2int_rn(v.y * s), c = __float2int_rn(v.z * s),
      d = __float2int_rn(v.w * s);
  y[i] = make_char4(min(max(a, -127), 127), min(max(b, -127), 127), min(max(c, -127), 127), min(max(d, -127), 127));
}

__global__ void dequantise(signed char* x, float* scale, __half* y, int width, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __float2half(x[i] * scale[i / width]);
}

// A warp sums a row of halves, eight at a time.
__global__ void sum_rows_half(const uint4* __restrict__ x, float* __restrict__ sums, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0.0f;
#pragma unroll 4
  for (int i = lane; i < WIDTH / 8; i += 32) {
    uint4 eight = x[(size_t)row * (WIDTH / 8) + i];
    const __half2* pairs = reinterpret_cast<const __half2*>(&eight);
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const float2 pair = __half22float2(pairs[k]);
      sum += pair.x + pair.y;
    }
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (lane == 0) sums[row] = sum;
}

// The rows' largest magnitudes in half precision: a block a row, all in shared memory.
__global__ void largest_half(__half* x, __half* largest) {
  __shared__ __half part[256];
  int tid = threadIdx.x;
  __half v = __float2half(0.0f);
  for (int i = tid; i < WIDTH; i += blockDim.x) v = __hmax(v, __habs(x[blockIdx.x * WIDTH + i]));
  part[tid] = v;
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    __syncthreads();
    if (tid < s) part[tid] = __hmax(part[tid], part[tid + s]);
  }
  if (tid == 0) largest[blockIdx.x] = part[0];
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 15), rows = n / WIDTH;
  float *wide = memory<float>(n), *scale = memory<float>(rows);
  __half *x = memory<__half>(n), *y = memory<__half>(n), *z = memory<__half>(n);
  auto* bytes = memory<signed char>(n);
  measure("axpy of halves", [&] { axpy_half<<<n / 256, 256>>>(x, y, __float2half(1e-3f), n); });
  measure("bias and GELU of pairs",
          [&] { bias_gelu_half2<<<n / 2 / 256, 256>>>((__half2*)x, (__half2*)z, (__half2*)y, n / 2); });
  measure("bfloat16 to float", [&] { bfloat16_to_float<<<n / 512, 512>>>((__nv_bfloat16*)x, wide, n); });
  measure("float to bfloat16", [&] { float_to_bfloat16<<<1056, 256>>>((float4*)wide, (__nv_bfloat162*)y, n / 4); });
  measure("residual in bfloat16", [&] {
    residual_bfloat16<<<n / 128, 128>>>((__nv_bfloat16*)x, (__nv_bfloat16*)y, (__nv_bfloat16*)z, 0.5f, n);
  });
  measure("quantise", [&] { quantise<<<dim3(WIDTH / 4 / 128, rows), 128>>>((float4*)wide, scale, (char4*)bytes); });
  measure("dequantise", [&] { dequantise<<<n / 256, 256>>>(bytes, scale, y, WIDTH, n); });
  measure("sums of rows", [&] { sum_rows_half<<<(rows + 3) / 4, 128>>>((uint4*)x, scale, rows); });
  measure("largest of rows", [&] { largest_half<<<rows, 256>>>(x, z); });
}
