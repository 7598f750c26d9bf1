// title: A frontier that grows: each level of a game's positions in a buffer of exactly its size, from a pool
// features: memory_pools, atomics, warp_votes

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <set>
#include <vector>

#define CALL(x) { cudaError_t e = (x); if (e) { fprintf(stderr, "%s (%d)\n", cudaGetErrorString(e), __LINE__); exit(1); } }

/* A position is a number; its moves lead to three others below 5000. */
__host__ __device__ static inline int move(int position, int kind) {
  return kind == 0 ? (position * 2 + 1) % 4999 : kind == 1 ? (position + 137) % 4999 : (position * 5 + 11) % 4999;
}

__global__ void expand(const int *front, int n, int *seen, int *next, int *count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int kind = 0; kind < 3; kind++) {
    int fresh = 0, to = 0;
    if (i < n) {
      to = move(front[i], kind);
      fresh = atomicCAS(&seen[to], 0, 1) == 0; /* only one thread takes it */
    }
    unsigned mask = __ballot_sync(0xffffffffu, fresh);
    int lane = threadIdx.x & 31, base = 0;
    if (lane == 0 && mask) base = atomicAdd(count, __popc(mask)); /* one request for the whole warp */
    base = __shfl_sync(0xffffffffu, base, 0);
    if (fresh) next[base + __popc(mask & ((1u << lane) - 1))] = to;
  }
}

int main(void) {
  cudaMemPoolProps props;
  cudaMemPool_t pool;
  cudaStream_t s;
  memset(&props, 0, sizeof props);
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = 0;
  CALL(cudaMemPoolCreate(&pool, &props));
  CALL(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CALL(cudaDeviceSetMemPool(0, pool)); /* cudaMallocAsync takes from it now */
  int *seen, *front, *count, n = 1, start = 7, one = 1, level = 0, total = 1;
  CALL(cudaMallocAsync((void **)&seen, 5000 * sizeof(int), s));
  CALL(cudaMallocAsync((void **)&count, sizeof(int), s));
  CALL(cudaMallocAsync((void **)&front, sizeof(int), s));
  CALL(cudaMemsetAsync(seen, 0, 5000 * sizeof(int), s));
  CALL(cudaMemcpyAsync(seen + start, &one, sizeof(int), cudaMemcpyHostToDevice, s));
  CALL(cudaMemcpyAsync(front, &start, sizeof(int), cudaMemcpyHostToDevice, s));
  std::vector<std::set<int>> levels;
  levels.push_back(std::set<int>{start});
  std::vector<char> known(5000, 0);
  known[start] = 1;
  int wrong = 0;
  while (n > 0 && level < 100) {
    int *next, found = 0;
    CALL(cudaMallocAsync((void **)&next, 3 * n * sizeof(int), s)); /* at most three times as many */
    CALL(cudaMemsetAsync(count, 0, sizeof(int), s));
    expand<<<(n + 63) / 64, 64, 0, s>>>(front, n, seen, next, count);
    CALL(cudaGetLastError());
    CALL(cudaFreeAsync(front, s));
    CALL(cudaMemcpyAsync(&found, count, sizeof(int), cudaMemcpyDeviceToHost, s));
    CALL(cudaStreamSynchronize(s));
    std::vector<int> got(found);
    if (found) CALL(cudaMemcpyAsync(got.data(), next, found * sizeof(int), cudaMemcpyDeviceToHost, s));
    CALL(cudaStreamSynchronize(s));
    std::set<int> want;
    for (int p : levels.back())
      for (int kind = 0; kind < 3; kind++)
        if (!known[move(p, kind)]) {
          known[move(p, kind)] = 1;
          want.insert(move(p, kind));
        }
    wrong += std::set<int>(got.begin(), got.end()) != want || (int)want.size() != found;
    levels.push_back(want);
    front = next;
    n = found;
    total += found;
    level++;
    if (level <= 5) printf("level %d: %d positions\n", level, found);
  }
  CALL(cudaFreeAsync(front, s));
  CALL(cudaFreeAsync(seen, s));
  CALL(cudaFreeAsync(count, s));
  CALL(cudaStreamSynchronize(s));
  CALL(cudaStreamDestroy(s));
  cudaMemPool_t standard;
  CALL(cudaDeviceGetDefaultMemPool(&standard, 0));
  CALL(cudaDeviceSetMemPool(0, standard));
  CALL(cudaMemPoolDestroy(pool));
  printf("%d positions in %d levels\n", total, level);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
