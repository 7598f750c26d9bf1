// check: sound
// near: warp_divergence
// what: a sum by shuffles in which the upper lanes get values that they do not use, of a struct with padding

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Best { double score; short index; };

__device__ Best better(Best a, Best b) { return a.score > b.score || (a.score == b.score && a.index < b.index) ? a : b; }

__global__ void find(const double* scores, Best* best, int n) {
  int i = threadIdx.x;
  Best mine{i < n ? scores[i] : -1.0, short(i)};
  for (int step = 16; step > 0; step /= 2) {
    Best other{__shfl_down_sync(0xffffffffu, mine.score, step), short(__shfl_down_sync(0xffffffffu, int(mine.index), step))};
    if (threadIdx.x % 32 + step < 32) mine = better(mine, other);
  }
  if (i % 32 == 0) best[i / 32] = mine;
}

int main() {
  const int n = 50;
  double host[n], *scores;
  Best result[2], *best;
  for (int i = 0; i < n; i++) host[i] = i * 13 % 47;
  CHECK(cudaMalloc(&scores, sizeof host));
  CHECK(cudaMalloc(&best, sizeof result));
  CHECK(cudaMemcpy(scores, host, sizeof host, cudaMemcpyHostToDevice));
  find<<<1, 64>>>(scores, best, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result, best, sizeof result, cudaMemcpyDeviceToHost));
  printf("%d %d\n", result[0].index, result[1].index);
  CHECK(cudaFree(scores));
  CHECK(cudaFree(best));
}
