// Loads in which lanes share words, or take the words of a line in another order: sectors count once however often they are asked for.
// sizes: 14 26 (log2 of the threads)
#include "micro.h"

enum Pattern { WARP, HALF_WARP, BLOCK, BACKWARDS, SHUFFLED, TWO_ENDS };

template <Pattern P>
__global__ void read(const float* x, float* y) {
  const size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  const size_t warp = i / 32 * 32;
  const unsigned lane = threadIdx.x % 32;
  size_t at = 0;
  if (P == WARP) at = i / 32;  // one word
  if (P == HALF_WARP) at = warp + lane / 16 * 8;  // two words in two sectors
  if (P == BLOCK) at = blockIdx.x;  // one word for all warps
  if (P == BACKWARDS) at = warp + (31 - lane);  // the same line from its end
  if (P == SHUFFLED) at = warp + lane * 5 % 32;  // the same line in another order
  if (P == TWO_ENDS) at = lane % 2 ? warp : warp + 31;  // two words at a line's ends
  y[i] = x[at];
}

int main(int argc, char** argv) {
  const size_t n = size_t(1) << size_of_run(argc, argv, 14);
  const unsigned blocks = n / 256;
  float *x = memory<float>(n), *y = memory<float>(n);
  measure("a word a warp", [&] { read<WARP><<<blocks, 256>>>(x, y); });
  measure("a word a half-warp", [&] { read<HALF_WARP><<<blocks, 256>>>(x, y); });
  measure("a word a block", [&] { read<BLOCK><<<blocks, 256>>>(x, y); });
  measure("line backwards", [&] { read<BACKWARDS><<<blocks, 256>>>(x, y); });
  measure("line shuffled", [&] { read<SHUFFLED><<<blocks, 256>>>(x, y); });
  measure("line's two ends", [&] { read<TWO_ENDS><<<blocks, 256>>>(x, y); });
}
