/*
Histogram of the letters of a text, and of bytes: many threads count into few bins.

    nvcc -std=c++17 -arch=native histogram.cu -o histogram && ./histogram
    python -m simt run histogram.cu

version 1: an atomicAdd in global memory for every element: threads wait for each other at the popular bins
version 2: every block counts into bins of its own in shared memory, and adds them to the result once
version 3: version 2 where a thread adds up runs of equal elements before it asks for the atomic
Uses managed memory: one pointer for host and device, after a synchronisation.
*/

#include <assert.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                     \
  {                                                                                                     \
    const cudaError_t error = call;                                                                     \
    if (error != cudaSuccess) {                                                                         \
      printf("Error: %s:%d, ", __FILE__, __LINE__);                                                     \
      printf("code: %d, reason: %s\n", error, cudaGetErrorString(error));                               \
      exit(1);                                                                                          \
    }                                                                                                   \
  }

#define BINS 256

typedef unsigned char byte;

// ---- CPU reference ----

void histogram_cpu(const byte *data, unsigned *bins, int n) {
  memset(bins, 0, BINS * sizeof(unsigned));
  for (int i = 0; i < n; i++) bins[data[i]]++;
}

// ---- kernels ----

__global__ void histogram_global(const byte *data, unsigned *bins, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&bins[data[i]], 1u);
}

__global__ void histogram_shared(const byte *data, unsigned *bins, int n) {
  __shared__ unsigned own[BINS];
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) own[b] = 0;
  __syncthreads();
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) atomicAdd(&own[data[i]], 1u);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += blockDim.x)
    if (own[b] > 0) atomicAdd(&bins[b], own[b]);
}

__global__ void histogram_runs(const byte *data, unsigned *bins, int n) {
  __shared__ unsigned own[BINS];
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) own[b] = 0;
  __syncthreads();
  int stride = gridDim.x * blockDim.x;
  int current = -1;
  unsigned run = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    if (data[i] == current) {
      run++;
      continue;
    }
    if (run > 0) atomicAdd(&own[current], run);
    current = data[i];
    run = 1;
  }
  if (run > 0) atomicAdd(&own[current], run);
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += blockDim.x) atomicAdd(&bins[b], own[b]);
}

// ---- host ----

int main(void) {
  const char *saying = "the quick brown fox jumps over the lazy dog while five boxing wizards jump quickly; ";
  const int n = 200000, length = (int)strlen(saying);
  int failures = 0;

  byte *data;
  unsigned *bins;
  CHECK(cudaMallocManaged(&data, n));
  CHECK(cudaMallocManaged(&bins, BINS * sizeof(unsigned)));
  unsigned expected[BINS];

  for (int input = 0; input < 3; input++) {
    const char *names[] = {"text", "random bytes", "one value"};
    unsigned random = 1;
    for (int i = 0; i < n; i++) {
      random = random * 1103515245u + 12345u;
      data[i] = input == 0 ? (byte)saying[i % length] : input == 1 ? (byte)(random >> 16) : (byte)7;
    }
    histogram_cpu(data, expected, n);
    for (int version = 1; version <= 3; version++) {
      CHECK(cudaMemset(bins, 0, BINS * sizeof(unsigned)));
      switch (version) {
        case 1: histogram_global<<<24, 256>>>(data, bins, n); break;
        case 2: histogram_shared<<<24, 256>>>(data, bins, n); break;
        case 3: histogram_runs<<<24, 256>>>(data, bins, n); break;
        default: assert(false);
      }
      CHECK(cudaGetLastError());
      CHECK(cudaDeviceSynchronize());      // before the host may look at managed memory
      int wrong = memcmp(bins, expected, sizeof(expected)) != 0;
      unsigned total = 0, checksum = 0, most = 0;
      for (int b = 0; b < BINS; b++) {
        total += bins[b];
        checksum = checksum * 31 + bins[b];
        if (bins[b] > bins[most]) most = b;
      }
      printf("%-12s version %d: %s, total %u, most often %u (%u times), checksum %08x\n", names[input], version, wrong ? "WRONG" : "ok", total, most,
             bins[most], checksum);
      failures += wrong;
    }
  }
  CHECK(cudaFree(data));
  CHECK(cudaFree(bins));
  return failures;
}
