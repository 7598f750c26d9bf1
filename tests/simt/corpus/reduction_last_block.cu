// title: minimum, maximum and sum in one launch: the last block to finish combines the results of all
// features: memory_fences, atomics, reduction, device_variables

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <algorithm>
#include <vector>

struct Stats {
  int low;
  int high;
  long long total;
};

__host__ __device__ inline Stats combine(const Stats &a, const Stats &b) {
  Stats r;
  r.low = a.low < b.low ? a.low : b.low;
  r.high = a.high > b.high ? a.high : b.high;
  r.total = a.total + b.total;
  return r;
}

__device__ unsigned int count = 0;
__shared__ bool isLastBlockDone;

__device__ Stats calculatePartial(const int *array, unsigned int n) {
  __shared__ Stats scratch[128];
  Stats s = {INT_MAX, INT_MIN, 0};
  for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Stats one = {array[i], array[i], array[i]};
    s = combine(s, one);
  }
  scratch[threadIdx.x] = s;
  __syncthreads();
  for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) scratch[threadIdx.x] = combine(scratch[threadIdx.x], scratch[threadIdx.x + half]);
    __syncthreads();
  }
  return scratch[0];
}

__global__ void statistics(const int *array, unsigned int n, volatile int *lows, volatile int *highs,
                           volatile long long *totals, Stats *result) {
  Stats partial = calculatePartial(array, n);
  if (threadIdx.x == 0) {
    lows[blockIdx.x] = partial.low;
    highs[blockIdx.x] = partial.high;
    totals[blockIdx.x] = partial.total;

    // The results must be visible to all blocks before the counter says so.
    __threadfence();
    unsigned int value = atomicInc(&count, gridDim.x);
    isLastBlockDone = (value == (gridDim.x - 1));
  }
  __syncthreads();

  if (isLastBlockDone) {
    if (threadIdx.x == 0) {
      Stats s = {INT_MAX, INT_MIN, 0};
      for (unsigned int b = 0; b < gridDim.x; b++) {
        Stats other = {lows[b], highs[b], totals[b]};
        s = combine(s, other);
      }
      *result = s;
      count = 0;  // for the next launch
    }
  }
}

#define cudaSafe(e)                                                   \
  if ((e) != cudaSuccess) {                                           \
    fprintf(stderr, "CUDA error at %s:%d\n", __FILE__, __LINE__);     \
    exit(1);                                                          \
  }

int main() {
  const unsigned int sizes[] = {1, 127, 128, 129, 5000, 40000};
  const int maxBlocks = 24;
  int *d_array, *d_lows, *d_highs;
  long long *d_totals;
  Stats *d_result;
  cudaSafe(cudaMalloc(&d_array, 40000 * sizeof(int)));
  cudaSafe(cudaMalloc(&d_lows, maxBlocks * sizeof(int)));
  cudaSafe(cudaMalloc(&d_highs, maxBlocks * sizeof(int)));
  cudaSafe(cudaMalloc(&d_totals, maxBlocks * sizeof(long long)));
  cudaSafe(cudaMalloc(&d_result, sizeof(Stats)));

  int bad = 0;
  for (unsigned int n : sizes) {
    std::vector<int> array(n);
    unsigned int x = n;
    for (auto &v : array) {
      x = x * 1664525u + 1013904223u;
      v = (int)(x >> 8) - (1 << 23);
    }
    cudaSafe(cudaMemcpy(d_array, array.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    int blocks = std::min<int>(maxBlocks, (n + 127) / 128);
    statistics<<<blocks, 128>>>(d_array, n, d_lows, d_highs, d_totals, d_result);
    cudaSafe(cudaGetLastError());
    Stats got;
    cudaSafe(cudaMemcpy(&got, d_result, sizeof(got), cudaMemcpyDeviceToHost));
    long long total = 0;
    for (int v : array) total += v;
    bool right = got.low == *std::min_element(array.begin(), array.end()) &&
                 got.high == *std::max_element(array.begin(), array.end()) && got.total == total;
    printf("n = %5u: low %d, high %d, total %lld%s\n", n, got.low, got.high, got.total, right ? "" : "  WRONG");
    bad += !right;
  }
  cudaFree(d_array);
  cudaFree(d_lows);
  cudaFree(d_highs);
  cudaFree(d_totals);
  cudaFree(d_result);
  printf("%s\n", bad ? "FAILED" : "PASSED");
  return bad != 0;
}
