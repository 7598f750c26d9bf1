// Shared elements of 8 and 16 bytes that several lanes ask for, or that only some lanes ask for.
// sizes: 2 12 (log2 of the blocks)
#include "micro.h"

constexpr int BYTES = 16384, STEPS = 32;

__device__ float total(float2 v) { return v.x + v.y; }
__device__ float total(float4 v) { return v.x + v.y + v.z + v.w; }

enum Pattern {
  HALVES,
  QUARTERS,
  EIGHTHS,
  PAIRS,
  EVERY_16TH,
  EVERY_8TH,
  EVERY_2ND,
  SWAPPED,
  LOWER_LANES,
  EVEN_LANES,
  FAR_PAIRS
};

template <class T, Pattern P>
__global__ void read(float* y) {
  constexpr int N = BYTES / sizeof(T);
  __shared__ T words[N];
  for (int i = threadIdx.x; i < int(BYTES / sizeof(float)); i += blockDim.x) ((float*)words)[i] = i;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  int at = lane;
  if (P == HALVES) at = lane / 16;
  if (P == QUARTERS) at = lane / 8;
  if (P == EIGHTHS) at = lane / 4;
  if (P == PAIRS) at = lane / 2;
  if (P == EVERY_16TH) at = lane % 16;
  if (P == EVERY_8TH) at = lane % 8;
  if (P == EVERY_2ND) at = lane % 2;
  if (P == SWAPPED) at = lane ^ 1;
  if (P == FAR_PAIRS) at = lane / 2 * 8;
  float sum = 0.0f;
  const bool takes_part = P == LOWER_LANES ? lane < 16 : P == EVEN_LANES ? lane % 2 == 0 : true;
  if (takes_part)
    for (int step = 0; step < STEPS; step++) sum += total(words[(at + step * 35) % N]);
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

template <class T>
void run(float* y, int blocks) {
  measure(sizeof(T) == 8 ? "8 bytes, halves" : "16 bytes, halves", [&] { read<T, HALVES><<<blocks, 256>>>(y); });
  measure("quarters", [&] { read<T, QUARTERS><<<blocks, 256>>>(y); });
  measure("eighths", [&] { read<T, EIGHTHS><<<blocks, 256>>>(y); });
  measure("pairs", [&] { read<T, PAIRS><<<blocks, 256>>>(y); });
  measure("every 16th alike", [&] { read<T, EVERY_16TH><<<blocks, 256>>>(y); });
  measure("every 8th alike", [&] { read<T, EVERY_8TH><<<blocks, 256>>>(y); });
  measure("every 2nd alike", [&] { read<T, EVERY_2ND><<<blocks, 256>>>(y); });
  measure("neighbours swapped", [&] { read<T, SWAPPED><<<blocks, 256>>>(y); });
  measure("lower lanes", [&] { read<T, LOWER_LANES><<<blocks, 256>>>(y); });
  measure("even lanes", [&] { read<T, EVEN_LANES><<<blocks, 256>>>(y); });
  measure("far pairs", [&] { read<T, FAR_PAIRS><<<blocks, 256>>>(y); });
}

int main(int argc, char** argv) {
  const int blocks = 1 << size_of_run(argc, argv, 2);
  float* y = memory<float>((size_t)blocks * 256);
  run<float2>(y, blocks);
  run<float4>(y, blocks);
}
