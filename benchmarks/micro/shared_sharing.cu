// Shared memory words that several lanes ask for: free in one word, a wavefront for each further word of a bank.
// sizes: 2 12 (log2 of the blocks)
#include "micro.h"

constexpr int WORDS = 4096, STEPS = 64;

enum Pattern { ONE_WORD, PAIRS, TWO_ROWS, TWO_BANKS, COLUMN_OF_16, SQUARES };

template <Pattern P>
__global__ void read(float* y) {
  __shared__ float words[WORDS];
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = i;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  int at = 0;
  if (P == ONE_WORD) at = 0;                            // 1 wavefront
  if (P == PAIRS) at = lane / 2;                        // 16 words in 16 banks: 1
  if (P == TWO_ROWS) at = lane % 2 * 32;                // 2 words of one bank: 2
  if (P == TWO_BANKS) at = lane % 2;                    // 2 words of two banks: 1
  if (P == COLUMN_OF_16) at = lane % 16 * 16;           // 16 words in 2 banks: 8
  if (P == SQUARES) at = lane * lane;                   // irregular
  float sum = 0.0f;
  for (int step = 0; step < STEPS; step++) sum += words[(at + step * 33) % WORDS];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

int main(int argc, char** argv) {
  const int blocks = 1 << size_of_run(argc, argv, 2);
  float* y = memory<float>((size_t)blocks * 256);
  measure("one word", [&] { read<ONE_WORD><<<blocks, 256>>>(y); });
  measure("pairs", [&] { read<PAIRS><<<blocks, 256>>>(y); });
  measure("two rows", [&] { read<TWO_ROWS><<<blocks, 256>>>(y); });
  measure("two banks", [&] { read<TWO_BANKS><<<blocks, 256>>>(y); });
  measure("column of 16", [&] { read<COLUMN_OF_16><<<blocks, 256>>>(y); });
  measure("squares", [&] { read<SQUARES><<<blocks, 256>>>(y); });
}
