// check: sound
// near: warp_divergence
// what: tiles of eight lanes shuffle on their own, some of them in a branch that other tiles of the warp do not take

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cooperative_groups.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

namespace cg = cooperative_groups;

__global__ void row_sums(const int* in, int* out, const int* lengths) {
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(cg::this_thread_block());
  int row = blockIdx.x * (blockDim.x / 8) + threadIdx.x / 8;
  if (lengths[row] == 0) {
    if (tile.thread_rank() == 0) out[row] = -1;
    return;
  }
  int sum = 0;
  for (int x = tile.thread_rank(); x < lengths[row]; x += 8) sum += in[row * 20 + x];
  for (int d = tile.size() / 2; d > 0; d /= 2) sum += tile.shfl_xor(sum, d);
  if (tile.thread_rank() == 7) out[row] = sum;
}

int main() {
  const int rows = 16;
  std::vector<int> in(rows * 20, 1), lengths(rows), out(rows);
  for (int r = 0; r < rows; r++) lengths[r] = r * 3 % 21;
  int *d_in, *d_out, *d_lengths;
  CHECK(cudaMalloc(&d_in, in.size() * sizeof(int)));
  CHECK(cudaMalloc(&d_out, rows * sizeof(int)));
  CHECK(cudaMalloc(&d_lengths, rows * sizeof(int)));
  CHECK(cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_lengths, lengths.data(), rows * sizeof(int), cudaMemcpyHostToDevice));
  row_sums<<<2, 64>>>(d_in, d_out, d_lengths);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, rows * sizeof(int), cudaMemcpyDeviceToHost));
  for (int s : out) printf("%d ", s);
  printf("\n");
  for (int* p : {d_in, d_out, d_lengths}) CHECK(cudaFree(p));
  return 0;
}
