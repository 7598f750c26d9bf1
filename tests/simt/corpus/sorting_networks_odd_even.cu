// title: sorting networks: odd-even transposition, odd-even merge and bitonic sort of keys with values
// features: sorting, shared_memory, warp_shuffles, device_functions

#include <stdio.h>
#include <stdlib.h>
#include <cuda.h>

#define SHARED_SIZE_LIMIT 256U

typedef unsigned int uint;

#define SAFE(call)                                                                    \
  {                                                                                   \
    cudaError_t err = call;                                                           \
    if (cudaSuccess != err) {                                                         \
      fprintf(stderr, "Cuda error in file '%s' in line %i : %s.\n", __FILE__, __LINE__, \
              cudaGetErrorString(err));                                               \
      exit(EXIT_FAILURE);                                                             \
    }                                                                                 \
  }

__device__ inline void Comparator(uint &keyA, uint &valA, uint &keyB, uint &valB, uint dir) {
  uint t;
  if ((keyA > keyB) == dir) {
    t = keyA;
    keyA = keyB;
    keyB = t;
    t = valA;
    valA = valB;
    valB = t;
  }
}

__global__ void bitonicSortShared(uint *d_Key, uint *d_Val, uint arrayLength, uint dir) {
  __shared__ uint s_key[SHARED_SIZE_LIMIT];
  __shared__ uint s_val[SHARED_SIZE_LIMIT];
  d_Key += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
  d_Val += blockIdx.x * SHARED_SIZE_LIMIT + threadIdx.x;
  s_key[threadIdx.x + 0] = d_Key[0];
  s_val[threadIdx.x + 0] = d_Val[0];
  s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)] = d_Key[(SHARED_SIZE_LIMIT / 2)];
  s_val[threadIdx.x + (SHARED_SIZE_LIMIT / 2)] = d_Val[(SHARED_SIZE_LIMIT / 2)];

  for (uint size = 2; size < arrayLength; size <<= 1) {
    uint ddd = dir ^ ((threadIdx.x & (size / 2)) != 0);
    for (uint stride = size / 2; stride > 0; stride >>= 1) {
      __syncthreads();
      uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      Comparator(s_key[pos + 0], s_val[pos + 0], s_key[pos + stride], s_val[pos + stride], ddd);
    }
  }
  for (uint stride = arrayLength / 2; stride > 0; stride >>= 1) {
    __syncthreads();
    uint pos = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    Comparator(s_key[pos + 0], s_val[pos + 0], s_key[pos + stride], s_val[pos + stride], dir);
  }
  __syncthreads();
  d_Key[0] = s_key[threadIdx.x + 0];
  d_Val[0] = s_val[threadIdx.x + 0];
  d_Key[(SHARED_SIZE_LIMIT / 2)] = s_key[threadIdx.x + (SHARED_SIZE_LIMIT / 2)];
  d_Val[(SHARED_SIZE_LIMIT / 2)] = s_val[threadIdx.x + (SHARED_SIZE_LIMIT / 2)];
}

/* Batcher's odd-even merge on arrays of any power of two, one step per launch */
__global__ void oddEvenMergeGlobal(uint *d_Key, uint *d_Val, uint arrayLength, uint size, uint stride, uint dir) {
  uint global_comparatorI = blockIdx.x * blockDim.x + threadIdx.x;
  uint pos = 2 * global_comparatorI - (global_comparatorI & (stride - 1));
  if (stride < size / 2) {
    uint offset = global_comparatorI & ((size / 2) - 1);
    if (offset >= stride) Comparator(d_Key[pos - stride], d_Val[pos - stride], d_Key[pos + 0], d_Val[pos + 0], dir);
  } else {
    Comparator(d_Key[pos + 0], d_Val[pos + 0], d_Key[pos + stride], d_Val[pos + stride], dir);
  }
}

/* Odd-even transposition (brick sort) of a small array of any length by one block */
__global__ void brickSort(uint *keys, uint *values, int n) {
  for (int phase = 0; phase < n; phase++) {
    int left = 2 * threadIdx.x + (phase & 1);
    if (left + 1 < n) Comparator(keys[left], values[left], keys[left + 1], values[left + 1], 1);
    __syncthreads();
  }
}

/* A warp sorts its 32 keys in registers. */
__global__ void warpBitonic(uint *keys) {
  uint lane = threadIdx.x & 31, key = keys[blockIdx.x * 32 + threadIdx.x];
  for (uint size = 2; size <= 32; size <<= 1)
    for (uint stride = size >> 1; stride; stride >>= 1) {
      uint other = __shfl_xor_sync(0xffffffffU, key, stride);
      bool up = (lane & size) == 0, lower = (lane & stride) == 0;
      key = (up == lower) ? min(key, other) : max(key, other);
    }
  keys[blockIdx.x * 32 + threadIdx.x] = key;
}

static uint *h_key, *h_val, *g_key, *g_val, *d_key, *d_val;

/* Each part of the result is in order, and is a permutation of the input by its values. */
static int validate(const char *name, uint n, uint part, uint dir, int with_values) {
  uint i, bad = 0, sum = 0, *seen = (uint *)calloc(n, sizeof(uint));
  SAFE(cudaGetLastError());
  SAFE(cudaMemcpy(g_key, d_key, n * sizeof(uint), cudaMemcpyDeviceToHost));
  SAFE(cudaMemcpy(g_val, d_val, n * sizeof(uint), cudaMemcpyDeviceToHost));
  for (i = 0; i < n; i++) {
    if (i % part && (dir ? g_key[i - 1] > g_key[i] : g_key[i - 1] < g_key[i])) bad++;
    sum += g_key[i] - h_key[i];
    if (with_values) {
      if (g_val[i] >= n || h_key[g_val[i]] != g_key[i] || seen[g_val[i]]++) bad++;
    }
  }
  free(seen);
  printf("%-24s %u keys, first %u, last %u: %s\n", name, n, g_key[0], g_key[n - 1], bad || sum ? "BAD" : "OK");
  return bad != 0 || sum != 0;
}

static void reset(uint n) {
  SAFE(cudaMemcpy(d_key, h_key, n * sizeof(uint), cudaMemcpyHostToDevice));
  SAFE(cudaMemcpy(d_val, h_val, n * sizeof(uint), cudaMemcpyHostToDevice));
}

int main(int argc, char **argv) {
  const uint N = 1024;
  int flag = 0;
  h_key = (uint *)malloc(N * sizeof(uint));
  h_val = (uint *)malloc(N * sizeof(uint));
  g_key = (uint *)malloc(N * sizeof(uint));
  g_val = (uint *)malloc(N * sizeof(uint));
  for (uint i = 0; i < N; i++) {
    h_key[i] = (i * 2654435761U) >> 20;
    h_val[i] = i;
  }
  SAFE(cudaMalloc((void **)&d_key, N * sizeof(uint)));
  SAFE(cudaMalloc((void **)&d_val, N * sizeof(uint)));

  for (uint dir = 0; dir < 2; dir++) {
    reset(N);
    bitonicSortShared<<<N / SHARED_SIZE_LIMIT, SHARED_SIZE_LIMIT / 2>>>(d_key, d_val, SHARED_SIZE_LIMIT, dir);
    flag |= validate(dir ? "bitonic, ascending" : "bitonic, descending", N, SHARED_SIZE_LIMIT, dir, 1);
    reset(N);
    for (uint size = 2; size <= N; size <<= 1)
      for (uint stride = size / 2; stride > 0; stride >>= 1)
        oddEvenMergeGlobal<<<N / 2 / 128, 128>>>(d_key, d_val, N, size, stride, dir);
    flag |= validate(dir ? "odd-even, ascending" : "odd-even, descending", N, N, dir, 1);
  }
  reset(N);
  brickSort<<<1, 100>>>(d_key, d_val, 199);
  flag |= validate("transposition", 199, 199, 1, 1);
  reset(N);
  warpBitonic<<<N / 32, 32>>>(d_key);
  flag |= validate("warps", N, 32, 1, 0);

  SAFE(cudaFree(d_key));
  SAFE(cudaFree(d_val));
  free(h_key);
  free(h_val);
  free(g_key);
  free(g_val);
  puts(flag ? "FAILED" : "PASSED");
  return flag;
}
