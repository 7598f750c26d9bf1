// check: device_assert
// what: an assertion with a macro and a shared array in its condition fails
// says: at(0, 1) != EMPTY

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define EMPTY -1
#define at(row, column) board[(row) * 8 + (column)]

__global__ void play(int* out) {
  __shared__ int board[64];
  board[threadIdx.x] = threadIdx.x % 2 ? EMPTY : 1;
  __syncthreads();
  if (threadIdx.x == 0) assert(at(0, 1) != EMPTY);  // defect
  out[threadIdx.x] = board[threadIdx.x];
}

int main() {
  int* out;
  cudaMalloc(&out, 64 * sizeof(int));
  play<<<1, 64>>>(out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(out);
}
