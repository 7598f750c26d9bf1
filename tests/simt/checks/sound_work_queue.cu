// check: sound
// near: schedule
// what: warps draw their work from a queue by atomicAdd; who does what depends on the schedule, the result does not

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void collatz(int* lengths, int n, int* next) {
  int lane = threadIdx.x % 32;
  while (true) {
    int start = 0;
    if (lane == 0) start = atomicAdd(next, 32);
    start = __shfl_sync(0xffffffff, start, 0);
    if (start >= n) break;
    int i = start + lane, length = 0;
    for (long long v = i + 1; v != 1; v = v % 2 ? 3 * v + 1 : v / 2) length++;
    if (i < n) lengths[i] = length;
    __syncwarp();
  }
}

int main() {
  const int n = 500;
  std::vector<int> lengths(n);
  int *d_lengths, *d_next;
  CHECK(cudaMalloc(&d_lengths, n * sizeof(int)));
  CHECK(cudaMalloc(&d_next, sizeof(int)));
  CHECK(cudaMemset(d_next, 0, sizeof(int)));
  collatz<<<2, 64>>>(d_lengths, n, d_next);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(lengths.data(), d_lengths, n * sizeof(int), cudaMemcpyDeviceToHost));
  int longest = 0;
  for (int i = 0; i < n; i++) longest = lengths[i] > lengths[longest] ? i : longest;
  printf("%d: %d steps\n", longest + 1, lengths[longest]);
  CHECK(cudaFree(d_lengths));
  CHECK(cudaFree(d_next));
  return 0;
}
