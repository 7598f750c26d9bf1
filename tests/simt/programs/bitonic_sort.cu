/*
Bitonic sort of keys with values: a fixed network of compare-and-swap steps, the same for every input.

    nvcc -std=c++17 -arch=native bitonic_sort.cu -o bitonic_sort && ./bitonic_sort
    python -m simt run bitonic_sort.cu

version 1: one launch for each of the log2(n) (log2(n) + 1) / 2 steps, in global memory
version 2: the steps whose pairs lie within a block's elements are done in shared memory, many to a launch
A pair is one 64-bit word, the key in its upper half; n is padded to a power of two with the largest word.
*/

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                     \
  do {                                                                                                  \
    if (cudaError_t error_ = (call); error_ != cudaSuccess) {                                           \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(error_));                     \
      exit(EXIT_FAILURE);                                                                               \
    }                                                                                                   \
  } while (0)

using Pair = unsigned long long;

constexpr unsigned THREADS = 256;
constexpr unsigned CHUNK = 2 * THREADS;      // elements in a block's shared memory
constexpr Pair LARGEST = ~0ull;

// ---- CPU reference ----

void sort_cpu(std::vector<Pair>& pairs) { std::sort(pairs.begin(), pairs.end()); }

// ---- kernels ----

// Of `size` elements each, runs are sorted up and down by turns.
__device__ void order(Pair& low, Pair& high, bool up) {
  if ((low > high) == up) {
    Pair kept = low;
    low = high;
    high = kept;
  }
}

__global__ void step(Pair* pairs, unsigned size, unsigned stride) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned i = 2 * t - (t & (stride - 1));      // of a pair i, i + stride
  order(pairs[i], pairs[i + stride], (i & size) == 0);
}

// Steps of runs of `first` to `last` elements, as far as their strides fit into a chunk.
__global__ void steps_in_chunk(Pair* pairs, unsigned first, unsigned last) {
  __shared__ Pair own[CHUNK];
  Pair* chunk = pairs + blockIdx.x * CHUNK;
  unsigned t = threadIdx.x;
  own[t] = chunk[t];
  own[t + THREADS] = chunk[t + THREADS];
  for (unsigned size = first; size <= last; size *= 2) {
    for (unsigned stride = min(size, CHUNK) / 2; stride > 0; stride /= 2) {
      __syncthreads();
      unsigned i = 2 * t - (t & (stride - 1));
      order(own[i], own[i + stride], ((blockIdx.x * CHUNK + i) & size) == 0);
    }
  }
  __syncthreads();
  chunk[t] = own[t];
  chunk[t + THREADS] = own[t + THREADS];
}

// ---- host ----

void sort1(Pair* d_pairs, unsigned n) {
  for (unsigned size = 2; size <= n; size *= 2)
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      step<<<n / CHUNK, THREADS>>>(d_pairs, size, stride);
      CHECK(cudaGetLastError());
    }
}

void sort2(Pair* d_pairs, unsigned n) {
  steps_in_chunk<<<n / CHUNK, THREADS>>>(d_pairs, 2, CHUNK);
  for (unsigned size = 2 * CHUNK; size <= n; size *= 2) {
    for (unsigned stride = size / 2; stride >= CHUNK; stride /= 2) step<<<n / CHUNK, THREADS>>>(d_pairs, size, stride);
    steps_in_chunk<<<n / CHUNK, THREADS>>>(d_pairs, size, size);
    CHECK(cudaGetLastError());
  }
}

int main() {
  bool ok = true;
  for (unsigned count : {1u, 512u, 5000u, 16384u}) {
    unsigned n = CHUNK;
    while (n < count) n *= 2;
    std::vector<Pair> pairs(n, LARGEST), sorted;
    uint32_t random = 2463534242u;
    for (unsigned i = 0; i < count; i++) {
      random ^= random << 13, random ^= random >> 17, random ^= random << 5;
      pairs[i] = Pair(random % 10007) << 32 | i;      // some keys come twice: the index decides
    }
    sorted = pairs;
    sort_cpu(sorted);
    Pair* d_pairs;
    CHECK(cudaMalloc(&d_pairs, n * sizeof(Pair)));
    for (int version = 1; version <= 2; version++) {
      CHECK(cudaMemcpy(d_pairs, pairs.data(), n * sizeof(Pair), cudaMemcpyHostToDevice));
      if (version == 1) sort1(d_pairs, n);
      else sort2(d_pairs, n);
      std::vector<Pair> got(n);
      CHECK(cudaMemcpy(got.data(), d_pairs, n * sizeof(Pair), cudaMemcpyDeviceToHost));
      uint32_t checksum = 0;
      for (unsigned i = 0; i < count; i++) checksum = checksum * 31 + (uint32_t)(got[i] >> 32) + 7 * (uint32_t)got[i];
      printf("version %d, %5u pairs: %s, keys %u to %u, checksum %08x\n", version, count, got == sorted ? "ok" : "WRONG",
             (unsigned)(got[0] >> 32), (unsigned)(got[count - 1] >> 32), checksum);
      ok = ok && got == sorted;
    }
    CHECK(cudaFree(d_pairs));
  }
  return ok ? 0 : 1;
}
