// check: schedule
// near: schedule
// what: each block prints its turn, which depends on the order of the blocks

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int turns = 0;

__global__ void take_turn() {
  int turn = atomicAdd(&turns, 1);  // defect
  if (blockIdx.x == 3) printf("block 3 is number %d\n", turn);
}

int main() {
  take_turn<<<5, 1>>>();
  CHECK(cudaDeviceSynchronize());
}
