// Shared memory read with 1, 2, 4, 8, 32 and 33 words between lanes: 1, 2, 4, 8, 32 and 1 wavefronts a request.
// sizes: 2 12 (log2 of the blocks)
#include "micro.h"

constexpr int WORDS = 8192, STEPS = 64;

template <int STRIDE>
__global__ void read(float* y) {
  __shared__ float words[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i;
  __syncthreads();
  float sum = 0.0f;
  for (int step = 0; step < STEPS; step++) sum += words[(threadIdx.x * STRIDE + step * 67) % WORDS];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <int STRIDE>
__global__ void write(float* y) {
  __shared__ float words[WORDS];
  for (int step = 0; step < STEPS; step++) words[(threadIdx.x * STRIDE + step * 67) % WORDS] = step;
  __syncthreads();
  y[blockIdx.x * blockDim.x + threadIdx.x] = words[threadIdx.x * STRIDE % WORDS];
}

int main(int argc, char** argv) {
  const int blocks = 1 << size_of_run(argc, argv, 2);
  float* y = memory<float>((size_t)blocks * 256);
  measure("read stride 1", [&] { read<1><<<blocks, 256>>>(y); });
  measure("read stride 2", [&] { read<2><<<blocks, 256>>>(y); });
  measure("read stride 4", [&] { read<4><<<blocks, 256>>>(y); });
  measure("read stride 8", [&] { read<8><<<blocks, 256>>>(y); });
  measure("read stride 32", [&] { read<32><<<blocks, 256>>>(y); });
  measure("read stride 33", [&] { read<33><<<blocks, 256>>>(y); });
  measure("write stride 1", [&] { write<1><<<blocks, 256>>>(y); });
  measure("write stride 2", [&] { write<2><<<blocks, 256>>>(y); });
  measure("write stride 32", [&] { write<32><<<blocks, 256>>>(y); });
}
