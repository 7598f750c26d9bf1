// title: radix sort, least significant digit first: one bit per pass with a scan, and four bits with sorted tiles
// features: sorting, scan, shared_memory, atomics, templates

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

using uint = unsigned int;

#define CHECK_CUDA(x)                                                                                \
  do {                                                                                               \
    cudaError_t err = (x);                                                                           \
    if (err != cudaSuccess) {                                                                        \
      std::fprintf(stderr, "[%s:%d] CUDA error: %s\n", __FILE__, __LINE__, cudaGetErrorString(err)); \
      std::exit(EXIT_FAILURE);                                                                       \
    }                                                                                                \
  } while (0)

constexpr int THREADS = 128;
constexpr int RADIX_BITS = 4;
constexpr int RADIX = 1 << RADIX_BITS;

// Exclusive sum over the block; every thread gets its own and the total.
__device__ uint block_scan(uint value, uint* total) {
  __shared__ uint sums[2][THREADS];
  int t = threadIdx.x, from = 0;
  sums[0][t] = value;
  __syncthreads();
  for (int d = 1; d < THREADS; d *= 2) {
    sums[1 - from][t] = sums[from][t] + (t >= d ? sums[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  *total = sums[from][THREADS - 1];
  uint result = sums[from][t] - value;
  __syncthreads();
  return result;
}

// One block sorts up to THREADS keys by all their bits.
__global__ void sort_in_block(uint* keys, int n) {
  __shared__ uint local[THREADS];
  int t = threadIdx.x;
  local[t] = t < n ? keys[t] : 0xffffffffu;
  __syncthreads();
  for (int bit = 0; bit < 32; bit++) {
    uint key = local[t];
    uint one = (key >> bit) & 1, ones;
    uint ones_before = block_scan(one, &ones);
    uint zeros = THREADS - ones;
    uint place = one ? zeros + ones_before : t - ones_before;
    local[place] = key;
    __syncthreads();
  }
  if (t < n) keys[t] = local[t];
}

// Counts the digits of a tile. Counts are stored by digit first, so that one scan gives all places.
__global__ void count_digits(const uint* keys, int n, int shift, uint* counts) {
  __shared__ uint bins[RADIX];
  if (threadIdx.x < RADIX) bins[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) atomicAdd(&bins[(keys[i] >> shift) & (RADIX - 1)], 1u);
  __syncthreads();
  if (threadIdx.x < RADIX) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

__global__ void scan_counts(uint* counts, int n) {
  uint carry = 0;
  for (int start = 0; start < n; start += THREADS) {
    int i = start + threadIdx.x;
    uint value = i < n ? counts[i] : 0, total;
    uint before = block_scan(value, &total);
    if (i < n) counts[i] = carry + before;
    carry += total;
  }
}

// Sorts the tile by the digit (stable), then writes runs of equal digits to their places.
template <typename Value>
__global__ void scatter(const uint* keys_in, const Value* values_in, uint* keys_out, Value* values_out, int n,
                        int shift, const uint* places) {
  __shared__ uint keys[THREADS];
  __shared__ Value values[THREADS];
  __shared__ uint first[RADIX];
  int t = threadIdx.x, i = blockIdx.x * THREADS + t;
  int in_tile = min(THREADS, n - int(blockIdx.x) * THREADS);
  bool valid = t < in_tile;
  uint key = valid ? keys_in[i] : 0;
  Value value = valid ? values_in[i] : Value();
  uint digit = valid ? (key >> shift) & (RADIX - 1) : RADIX - 1;
  for (int bit = 0; bit < RADIX_BITS; bit++) {
    uint one = !valid | ((digit >> bit) & 1), ones;
    uint ones_before = block_scan(one, &ones);
    uint place = one ? THREADS - ones + ones_before : t - ones_before;
    keys[place] = key;
    values[place] = value;
    __syncthreads();
    key = keys[t];
    value = values[t];
    valid = t < in_tile;
    digit = valid ? (key >> shift) & (RADIX - 1) : RADIX - 1;
    __syncthreads();
  }
  keys[t] = digit;
  __syncthreads();
  if (t == 0 || keys[t] != keys[t - 1]) first[digit] = t;
  __syncthreads();
  if (valid) {
    uint to = places[digit * gridDim.x + blockIdx.x] + t - first[digit];
    keys_out[to] = key;
    values_out[to] = value;
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 3001;
  std::vector<uint> keys(n);
  std::vector<float> values(n);
  uint state = 12345;
  for (int i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    keys[i] = i % 3 ? state >> 12 : state >> 26;  // many equal keys among them
    values[i] = static_cast<float>(i);
  }

  uint *k[2], *counts;
  float* v[2];
  const int blocks = (n + THREADS - 1) / THREADS;
  for (int j = 0; j < 2; j++) {
    CHECK_CUDA(cudaMalloc(&k[j], n * sizeof(uint)));
    CHECK_CUDA(cudaMalloc(&v[j], n * sizeof(float)));
  }
  CHECK_CUDA(cudaMalloc(&counts, RADIX * blocks * sizeof(uint)));
  CHECK_CUDA(cudaMemcpy(k[0], keys.data(), n * sizeof(uint), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaMemcpy(v[0], values.data(), n * sizeof(float), cudaMemcpyHostToDevice));

  auto begin = std::chrono::steady_clock::now();
  int from = 0;
  for (int shift = 0; shift < 20; shift += RADIX_BITS, from ^= 1) {
    count_digits<<<blocks, THREADS>>>(k[from], n, shift, counts);
    scan_counts<<<1, THREADS>>>(counts, RADIX * blocks);
    scatter<<<blocks, THREADS>>>(k[from], v[from], k[from ^ 1], v[from ^ 1], n, shift, counts);
    CHECK_CUDA(cudaGetLastError());
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  std::fprintf(stderr, "%g s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());

  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
  std::vector<uint> got(n);
  std::vector<float> got_values(n);
  CHECK_CUDA(cudaMemcpy(got.data(), k[from], n * sizeof(uint), cudaMemcpyDeviceToHost));
  CHECK_CUDA(cudaMemcpy(got_values.data(), v[from], n * sizeof(float), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += got[i] != keys[order[i]] || got_values[i] != values[order[i]];
  std::printf("pairs: %d of %d wrong; smallest %u, median %u, largest %u\n", wrong, n, got[0], got[n / 2], got[n - 1]);

  const int few = 100;
  CHECK_CUDA(cudaMemcpy(k[0], keys.data(), few * sizeof(uint), cudaMemcpyHostToDevice));
  sort_in_block<<<1, THREADS>>>(k[0], few);
  CHECK_CUDA(cudaMemcpy(got.data(), k[0], few * sizeof(uint), cudaMemcpyDeviceToHost));
  std::sort(keys.begin(), keys.begin() + few);
  bool block_right = std::equal(keys.begin(), keys.begin() + few, got.begin());
  std::printf("one block: %s\n", block_right ? "sorted" : "not sorted");

  for (void* p : {(void*)k[0], (void*)k[1], (void*)v[0], (void*)v[1], (void*)counts}) CHECK_CUDA(cudaFree(p));
  std::puts(!wrong && block_right ? "PASSED" : "FAILED");
  return !wrong && block_right ? 0 : 1;
}
