// Atomic additions of a warp in different patterns: how many passes a request takes, in global and in shared memory.
// sizes: 12 22 (log2 of the threads)
#include "micro.h"

enum Pattern {
  LINE_SHUFFLED,
  PAIRS,
  FAR_PAIRS,
  EVEN_WORDS,
  A_SECTOR_EACH,
  A_LINE_EACH,
  SCATTERED,
  FEW_WORDS,
  ONE_WORD
};

template <Pattern P>
__device__ int place(int lane, int seed) {
  if (P == LINE_SHUFFLED) return lane * 5 % 32;
  if (P == PAIRS) return lane / 2;
  if (P == FAR_PAIRS) return lane % 16;
  if (P == EVEN_WORDS) return lane * 2;
  if (P == A_SECTOR_EACH) return lane * 8;
  if (P == A_LINE_EACH) return lane * 32;
  unsigned hash = (seed + 1) * 2654435761u;
  hash = (hash ^ hash >> 15) * 2246822519u;
  hash = (hash ^ hash >> 13) * 3266489917u >> 16;
  if (P == SCATTERED) return hash % 256;
  if (P == FEW_WORDS) return hash % 8;
  return 0;
}

// Every warp has 1024 words of its own, as long as there are warps below 512.
template <class T, Pattern P>
__global__ void in_global(T* sums) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&sums[i / 32 % 512 * 1024 + place<P>(threadIdx.x % 32, i)], T(i));
}

template <class T, Pattern P>
__global__ void in_shared(T* sums) {
  __shared__ T mine[1024];
  for (int k = threadIdx.x; k < 1024; k += blockDim.x) mine[k] = T(0);
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&mine[place<P>(threadIdx.x % 32, i)], T(i));
  __syncthreads();
  sums[i] = mine[threadIdx.x];
}

int main(int argc, char** argv) {
  const int n = 1 << size_of_run(argc, argv, 12), blocks = n / 256;
  float* x = memory<float>(std::max(n, 512 * 1024));
  int* k = (int*)x;
  measure("line shuffled", [&] { in_global<float, LINE_SHUFFLED><<<blocks, 256>>>(x); });
  measure("pairs", [&] { in_global<float, PAIRS><<<blocks, 256>>>(x); });
  measure("far pairs", [&] { in_global<float, FAR_PAIRS><<<blocks, 256>>>(x); });
  measure("even words", [&] { in_global<float, EVEN_WORDS><<<blocks, 256>>>(x); });
  measure("a sector each", [&] { in_global<float, A_SECTOR_EACH><<<blocks, 256>>>(x); });
  measure("a line each", [&] { in_global<float, A_LINE_EACH><<<blocks, 256>>>(x); });
  measure("scattered", [&] { in_global<float, SCATTERED><<<blocks, 256>>>(x); });
  measure("few words", [&] { in_global<float, FEW_WORDS><<<blocks, 256>>>(x); });
  measure("scattered integers", [&] { in_global<int, SCATTERED><<<blocks, 256>>>(k); });
  measure("few words, integers", [&] { in_global<int, FEW_WORDS><<<blocks, 256>>>(k); });
  measure("shared, line shuffled", [&] { in_shared<int, LINE_SHUFFLED><<<blocks, 256>>>(k); });
  measure("shared, pairs", [&] { in_shared<int, PAIRS><<<blocks, 256>>>(k); });
  measure("shared, far pairs", [&] { in_shared<int, FAR_PAIRS><<<blocks, 256>>>(k); });
  measure("shared, even words", [&] { in_shared<int, EVEN_WORDS><<<blocks, 256>>>(k); });
  measure("shared, one bank", [&] { in_shared<int, A_LINE_EACH><<<blocks, 256>>>(k); });
  measure("shared, scattered", [&] { in_shared<int, SCATTERED><<<blocks, 256>>>(k); });
  measure("shared, few words", [&] { in_shared<int, FEW_WORDS><<<blocks, 256>>>(k); });
  measure("shared, scattered floats", [&] { in_shared<float, SCATTERED><<<blocks, 256>>>(x); });
}
