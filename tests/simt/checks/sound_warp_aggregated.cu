// check: sound
// near: warp_divergence
// what: the lanes that happen to be in the branch together draw their places with one atomicAdd; the host sorts

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cooperative_groups.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

namespace cg = cooperative_groups;

__device__ int draw(int* counter) {
  cg::coalesced_group together = cg::coalesced_threads();
  int first = 0;
  if (together.thread_rank() == 0) first = atomicAdd(counter, (int)together.size());
  return together.shfl(first, 0) + together.thread_rank();
}

__global__ void keep_odd(const int* in, int n, int* out, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] % 2) {
    int place = draw(count);
    out[place] = in[i];
  }
}

int main() {
  const int n = 170;
  std::vector<int> host(n), kept(n);
  for (int i = 0; i < n; i++) host[i] = i * i / 3;
  int count, *d_in, *d_out, *d_count;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMalloc(&d_count, sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_count, 0, sizeof(int)));
  keep_odd<<<3, 64>>>(d_in, n, d_out, d_count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(kept.data(), d_out, count * sizeof(int), cudaMemcpyDeviceToHost));
  std::sort(kept.begin(), kept.begin() + count);
  printf("%d: %d … %d\n", count, kept[0], kept[count - 1]);
  for (int* p : {d_in, d_out, d_count}) CHECK(cudaFree(p));
  return 0;
}
