// check: sound
// near: uninitialized
// what: a device function that calls itself, with an array in each call's own frame

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

// In how many ways can n queens stand on an n x n board, with the rows before `row` placed?
__device__ int queens(int n, int row, const int* placed) {
  if (row == n) return 1;
  int mine[8], ways = 0;
  for (int r = 0; r < row; r++) mine[r] = placed[r];
  for (int column = 0; column < n; column++) {
    bool free = true;
    for (int r = 0; r < row; r++) free = free && mine[r] != column && abs(mine[r] - column) != row - r;
    mine[row] = column;
    if (free) ways += queens(n, row + 1, mine);
  }
  return ways;
}

__global__ void count(int n, int* ways) {
  int first[1] = {(int)threadIdx.x};
  ways[threadIdx.x] = queens(n, 1, first);
}

int main() {
  const int n = 6;
  int ways[n], sum = 0, *d_ways;
  CHECK(cudaMalloc(&d_ways, sizeof(ways)));
  count<<<1, n>>>(n, d_ways);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(ways, d_ways, sizeof(ways), cudaMemcpyDeviceToHost));
  for (int w : ways) sum += w;
  printf("%d\n", sum);
  CHECK(cudaFree(d_ways));
  return 0;
}
