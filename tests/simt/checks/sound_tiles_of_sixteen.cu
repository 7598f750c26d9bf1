// check: sound
// near: warp_divergence
// what: tiles of 16 lanes shuffle and vote on their own, although the two tiles of a warp take different branches

#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

namespace cg = cooperative_groups;

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int sum_of(cg::thread_block_tile<16> tile, int value) {
  for (int step = tile.size() / 2; step > 0; step /= 2) value += tile.shfl_xor(value, step);
  return value;
}

__global__ void reduce(const int* in, int* out) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int value = in[threadIdx.x];
  if (tile.meta_group_rank() % 2 == 0) {
    value = sum_of(tile, value);
  } else if (tile.any(value > 60)) {
    value = tile.shfl(value, 15);
  }
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = value;
}

int main() {
  int host[96], *in, *out;
  for (int i = 0; i < 96; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, 6 * sizeof(int)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reduce<<<1, 96>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, 6 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[5]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
