// title: Radix sort, four bits a pass: histograms per block, a scan, a stable scatter
// features: shared_memory, warp_votes, scans, device_functions
// args: 6000

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kThreads = 256, kBits = 4, kDigits = 1 << kBits;

#define CUDA_REQUIRE(...)                                                                          \
  do {                                                                                             \
    const cudaError_t require_ = (__VA_ARGS__);                                                    \
    if (require_ != cudaSuccess) {                                                                 \
      std::fprintf(stderr, "%d: %s: %s\n", __LINE__, #__VA_ARGS__, cudaGetErrorString(require_));  \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (0)

__global__ void count(const uint32_t* keys, int n, int shift, unsigned* histogram) {
  __shared__ unsigned bins[kDigits];
  if (threadIdx.x < kDigits) bins[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < n) atomicAdd(&bins[keys[i] >> shift & (kDigits - 1)], 1u);
  __syncthreads();
  if (threadIdx.x < kDigits) histogram[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];  // by digit, then by block
}

// Exclusive scan by one block, piece by piece.
__global__ void scan(unsigned* data, int n) {
  __shared__ unsigned sums[kThreads];
  __shared__ unsigned carry;
  if (threadIdx.x == 0) carry = 0;
  for (int base = 0; base < n; base += kThreads) {
    int i = base + threadIdx.x;
    unsigned value = i < n ? data[i] : 0;
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int d = 1; d < kThreads; d <<= 1) {
      unsigned left = threadIdx.x >= d ? sums[threadIdx.x - d] : 0;
      __syncthreads();
      sums[threadIdx.x] += left;
      __syncthreads();
    }
    if (i < n) data[i] = carry + sums[threadIdx.x] - value;
    __syncthreads();
    if (threadIdx.x == kThreads - 1) carry += sums[threadIdx.x];
    __syncthreads();
  }
}

// The rank of a key among equal digits of its block: those of lower lanes, by ballots, and those of lower warps.
__global__ void scatter(const uint32_t* keys, const uint32_t* values, uint32_t* outKeys, uint32_t* outValues, int n, int shift, const unsigned* offsets) {
  __shared__ unsigned warpCounts[kThreads / 32][kDigits];
  int i = blockIdx.x * kThreads + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  bool valid = i < n;
  unsigned digit = valid ? keys[i] >> shift & (kDigits - 1) : kDigits;
  unsigned same = __ballot_sync(0xffffffffu, valid);
  for (int b = 0; b < kBits; b++) {
    unsigned ones = __ballot_sync(0xffffffffu, digit >> b & 1);
    same &= digit >> b & 1 ? ones : ~ones;
  }
  if (lane < kDigits) warpCounts[warp][lane] = 0;
  __syncwarp();
  unsigned before = __popc(same & ((1u << lane) - 1));
  if (valid && before == 0) warpCounts[warp][digit] = __popc(same);
  __syncthreads();
  if (!valid) return;
  for (int w = 0; w < warp; w++) before += warpCounts[w][digit];
  unsigned at = offsets[digit * gridDim.x + blockIdx.x] + before;
  outKeys[at] = keys[i];
  outValues[at] = values[i];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 6000, blocks = (n + kThreads - 1) / kThreads;
  std::vector<uint32_t> keys(n), values(n), k(n), v(n);
  uint32_t state = 2166136261u;
  for (int i = 0; i < n; i++) {
    state = (state ^ i) * 16777619u;
    keys[i] = i % 3 ? state : state >> 20;  // both large and small keys, some of them equal
    values[i] = i;
  }
  uint32_t* d[4];
  unsigned* histogram;
  for (auto& p : d) CUDA_REQUIRE(cudaMalloc(&p, n * sizeof(uint32_t)));
  CUDA_REQUIRE(cudaMalloc(&histogram, kDigits * blocks * sizeof(unsigned)));
  CUDA_REQUIRE(cudaMemcpy(d[0], keys.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
  CUDA_REQUIRE(cudaMemcpy(d[1], values.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
  for (int shift = 0; shift < 32; shift += kBits) {
    count<<<blocks, kThreads>>>(d[0], n, shift, histogram);
    scan<<<1, kThreads>>>(histogram, kDigits * blocks);
    scatter<<<blocks, kThreads>>>(d[0], d[1], d[2], d[3], n, shift, histogram);
    CUDA_REQUIRE(cudaGetLastError());
    std::swap(d[0], d[2]);
    std::swap(d[1], d[3]);
  }
  CUDA_REQUIRE(cudaMemcpy(k.data(), d[0], n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  CUDA_REQUIRE(cudaMemcpy(v.data(), d[1], n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  for (auto& p : d) CUDA_REQUIRE(cudaFree(p));
  CUDA_REQUIRE(cudaFree(histogram));
  std::vector<uint32_t> order(values);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += v[i] != order[i] || k[i] != keys[order[i]];
  std::printf("%d pairs: first %u, median %u, last %u\n", n, k[0], k[n / 2], k[n - 1]);
  std::puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
