// title: votes, match and reductions of a warp with the intrinsics, against loops over 32 lanes
// features: warp_votes, warp_match, warp_reduce, bit_operations, architecture_macros

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FULL 0xffffffffu
#define WARPS 8

struct Result {
  unsigned ballot, all, any, uni, match, match_all, pred;
  unsigned sum, least, most, conjunction, disjunction, exclusive;
  int signed_least, signed_most;
  unsigned lane_before, lane_at, active_rank;
};

__device__ __forceinline__ unsigned lane_mask_lt() {
  unsigned mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

__device__ unsigned warp_sum(unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  for (int o = 16; o; o /= 2) value += __shfl_xor_sync(FULL, value, o);
  return value;
#else
  return __reduce_add_sync(FULL, value);
#endif
}

__global__ void intrinsics(const unsigned *keys, Result *results) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % warpSize;
  const unsigned key = keys[i];
  Result r = {};
  r.ballot = __ballot_sync(FULL, key & 1);
  r.all = __all_sync(FULL, key < 40) != 0;
  r.any = __any_sync(FULL, key == 7) != 0;
  r.match = __match_any_sync(FULL, key);
  int pred = 0;
  r.match_all = __match_all_sync(FULL, key / 64, &pred);
  r.pred = pred != 0;
  r.uni = r.match == FULL;
  r.sum = warp_sum(key);
  r.least = __reduce_min_sync(FULL, key);
  r.most = __reduce_max_sync(FULL, key);
  r.signed_least = __reduce_min_sync(FULL, static_cast<int>(key) - 20);
  r.signed_most = __reduce_max_sync(FULL, static_cast<int>(key) - 20);
  r.conjunction = __reduce_and_sync(FULL, key | 8u);
  r.disjunction = __reduce_or_sync(FULL, key);
  r.exclusive = __reduce_xor_sync(FULL, key);
  r.lane_before = __popc(r.ballot & lane_mask_lt());
  r.lane_at = __fns(r.ballot, 0, 2);  // the second set bit
  r.active_rank = 99;
  if (lane % 3 == 1) {
    const unsigned mask = __ballot_sync(0x92492492u, key & 2);  // lanes 1, 4, 7, ...
    r.active_rank = __popc(mask & ((1u << lane) - 1));
  }
  __syncwarp();
  results[i] = r;
}

// Each key's leader counts its group: a histogram without conflicts within the warp.
__global__ void count_with_match(const unsigned *keys, unsigned *counts, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned active = __ballot_sync(FULL, i < n);
  if (i >= n) return;
  const unsigned peers = __match_any_sync(active, keys[i]);
  const int leader = __ffs(peers) - 1;
  if (threadIdx.x % 32 == leader) atomicAdd(&counts[keys[i]], __popc(peers));
}

static Result expect(const unsigned *warp, int lane) {
  Result r = {};
  r.all = r.pred = r.uni = 1;
  r.least = r.conjunction = FULL;
  r.signed_least = INT32_MAX;
  r.signed_most = INT32_MIN;
  r.active_rank = lane % 3 == 1 ? 0 : 99;
  r.lane_at = FULL;
  int odd = 0;
  for (int j = 0; j < 32; j++) {
    unsigned k = warp[j];
    if (k % 2) r.ballot |= 1u << j, r.lane_before += j < lane, odd++;
    if (k % 2 && odd == 2) r.lane_at = j;
    if (k >= 40) r.all = 0;
    if (k == 7) r.any = 1;
    if (k == warp[lane]) r.match |= 1u << j;
    if (k != warp[lane]) r.uni = 0;
    if (k / 64 != warp[0] / 64) r.pred = 0;
    r.sum += k;
    if (k < r.least) r.least = k;
    if (k > r.most) r.most = k;
    if ((int)k - 20 < r.signed_least) r.signed_least = (int)k - 20;
    if ((int)k - 20 > r.signed_most) r.signed_most = (int)k - 20;
    r.conjunction &= k | 8;
    r.disjunction |= k;
    r.exclusive ^= k;
    if (lane % 3 == 1 && j % 3 == 1 && j < lane) r.active_rank += k / 2 % 2;
  }
  r.match_all = r.pred ? FULL : 0;
  return r;
}

int main() {
  const int n = WARPS * 32, bins = 128;
  unsigned keys[n], *d_keys, *d_counts, counts[bins];
  Result *d_results, *results = new Result[n];
  for (int i = 0; i < n; i++) keys[i] = i / 32 == 3 ? 7 : i / 32 == 5 ? i % 32 * 4 : (i * 29 + i / 5) % 50;
  if (cudaMalloc(&d_keys, sizeof(keys)) || cudaMalloc(&d_results, n * sizeof(Result)) ||
      cudaMalloc(&d_counts, sizeof(counts)))
    return EXIT_FAILURE;
  cudaMemcpy(d_keys, keys, sizeof(keys), cudaMemcpyHostToDevice);
  cudaMemset(d_counts, 0, sizeof(counts));
  intrinsics<<<2, n / 2>>>(d_keys, d_results);
  count_with_match<<<3, 96>>>(d_keys, d_counts, n - 11);
  cudaMemcpy(results, d_results, n * sizeof(Result), cudaMemcpyDeviceToHost);
  cudaError_t status = cudaMemcpy(counts, d_counts, sizeof(counts), cudaMemcpyDeviceToHost);
  if (status != cudaSuccess) return fprintf(stderr, "%s\n", cudaGetErrorString(status)), EXIT_FAILURE;

  int wrong = 0;
  for (int i = 0; i < n; i++) {
    Result e = expect(keys + i / 32 * 32, i % 32);
    if (memcmp(&e, &results[i], sizeof(e))) wrong++;
  }
  for (int w = 0; w < WARPS; w++) {
    const Result &r = results[w * 32];
    printf("warp %d: odd %08x, sum %u, from %u to %u, xor %u, all alike %u\n", w, r.ballot, r.sum, r.least, r.most,
           r.exclusive, r.uni);
  }
  unsigned expected_counts[bins] = {};
  for (int i = 0; i < n - 11; i++) expected_counts[keys[i]]++;
  for (int b = 0; b < bins; b++) wrong += counts[b] != expected_counts[b];
  printf("sevens: %u, wrong: %d\n", counts[7], wrong);
  cudaFree(d_keys);
  cudaFree(d_results);
  cudaFree(d_counts);
  delete[] results;
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
