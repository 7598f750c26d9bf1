// check: sound
// near: int_overflow
// what: offsets up to 2147483647 exactly, and a bit mask with 1 << 31: both still fit

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void corners(int pitch, int* offsets, int* lanes_seen) {
  int lane = threadIdx.x, row = pitch - 1 - lane;
  offsets[lane] = row * pitch + (pitch - 1) + (lane == 0 ? 88047 : 0);  // 46340 * 46340 - 1 + 88047 + 1 = 2^31 - 1 at most
  if (lane == 0) offsets[lane] += 1;
  atomicOr(lanes_seen, 1 << lane);
}

int main() {
  int offsets[32], seen, *d_offsets, *d_seen;
  CHECK(cudaMalloc(&d_offsets, sizeof(offsets)));
  CHECK(cudaMalloc(&d_seen, sizeof(int)));
  CHECK(cudaMemset(d_seen, 0, sizeof(int)));
  corners<<<1, 32>>>(46340, d_offsets, d_seen);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(offsets, d_offsets, sizeof(offsets), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&seen, d_seen, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", offsets[0], offsets[31], seen);
  CHECK(cudaFree(d_offsets));
  CHECK(cudaFree(d_seen));
  return 0;
}
