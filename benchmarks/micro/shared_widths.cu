// Shared memory read 8 and 16 bytes a lane, without conflicts and with: two and four wavefronts are the least for a whole warp.
// sizes: 2 12 (log2 of the blocks)
#include "micro.h"

constexpr int BYTES = 32768, STEPS = 32;

__device__ float total(float v) { return v; }
__device__ float total(double v) { return (float)v; }
__device__ float total(float2 v) { return v.x + v.y; }
__device__ float total(float4 v) { return v.x + v.y + v.z + v.w; }

// Lane l reads element l * STRIDE of a table of T.
template <class T, int STRIDE>
__global__ void read(float* y) {
  constexpr int N = BYTES / sizeof(T);
  __shared__ T words[N];
  for (int i = threadIdx.x; i < int(BYTES / sizeof(float)); i += blockDim.x) ((float*)words)[i] = i;
  __syncthreads();
  float sum = 0.0f;
  for (int step = 0; step < STEPS; step++) sum += total(words[(threadIdx.x * STRIDE + step * 35) % N]);
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const int blocks = 1 << size_of_run(argc, argv, 2);
  float* y = memory<float>((size_t)blocks * 256);
  measure("double stride 1", [&] { read<double, 1><<<blocks, 256>>>(y); });
  measure("double stride 2", [&] { read<double, 2><<<blocks, 256>>>(y); });
  measure("double stride 16", [&] { read<double, 16><<<blocks, 256>>>(y); });
  measure("float2 stride 1", [&] { read<float2, 1><<<blocks, 256>>>(y); });
  measure("float2 stride 3", [&] { read<float2, 3><<<blocks, 256>>>(y); });
  measure("float2 stride 4", [&] { read<float2, 4><<<blocks, 256>>>(y); });
  measure("float4 stride 1", [&] { read<float4, 1><<<blocks, 256>>>(y); });
  measure("float4 stride 2", [&] { read<float4, 2><<<blocks, 256>>>(y); });
  measure("float4 stride 8", [&] { read<float4, 8><<<blocks, 256>>>(y); });
  measure("float4 stride 0", [&] { read<float4, 0><<<blocks, 256>>>(y); });
}
