// check: sound
// near: device_assert
// what: a helper function asserts what holds, and its condition has commas, a lambda and a cast

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

struct Pair { int first, second; };

__device__ bool in_order(Pair pair) { return pair.first <= pair.second; }

__global__ void order(Pair* pairs, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  Pair p = pairs[i];
  if (p.first > p.second) p = Pair{p.second, p.first};
  assert((in_order(Pair{p.first, p.second})));
  assert([&] { return p.first + p.second >= static_cast<int>(0u); }());
  pairs[i] = p;
}

int main() {
  Pair host[20], *pairs;
  for (int i = 0; i < 20; i++) host[i] = {20 - i, i};
  cudaMalloc(&pairs, sizeof host);
  cudaMemcpy(pairs, host, sizeof host, cudaMemcpyHostToDevice);
  order<<<1, 32>>>(pairs, 20);
  cudaError_t error = cudaMemcpy(host, pairs, sizeof host, cudaMemcpyDeviceToHost);
  printf("%s %d\n", cudaGetErrorString(error), host[0].first);
  cudaFree(pairs);
}
