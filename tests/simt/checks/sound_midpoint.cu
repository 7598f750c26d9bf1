// check: sound
// near: int_overflow
// what: a binary search over 0 … 2^31 - 1 takes the middle as low + (high - low) / 2

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

// The smallest k with k * (k + 1) / 2 >= target, found among all ints: which row of a triangle an element lies in.
__global__ void triangle_row(const long long* targets, int* rows, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int low = 0, high = 2147483647;
  for (int step = 0; step < 31 && low < high; step++) {
    int middle = low + (high - low) / 2;
    bool enough = (long long)middle * (middle + 1ll) / 2 >= targets[i];
    if (enough) high = middle;
    else low = middle + 1;
  }
  rows[i] = low;
}

int main() {
  const int n = 40;
  long long targets[n], *d_targets;
  int rows[n], *d_rows;
  for (int i = 0; i < n; i++) targets[i] = 1ll << (i + 20);
  CHECK(cudaMalloc(&d_targets, sizeof(targets)));
  CHECK(cudaMalloc(&d_rows, sizeof(rows)));
  CHECK(cudaMemcpy(d_targets, targets, sizeof(targets), cudaMemcpyHostToDevice));
  triangle_row<<<2, 32>>>(d_targets, d_rows, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(rows, d_rows, sizeof(rows), cudaMemcpyDeviceToHost));
  printf("%d %d\n", rows[0], rows[n - 1]);
  CHECK(cudaFree(d_targets));
  CHECK(cudaFree(d_rows));
  return 0;
}
