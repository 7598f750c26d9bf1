// check: sound
// near: warp_divergence
// what: all lanes vote with one mask, and each looks at the bits below its own

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void rank_of_even(const int* in, int* rank) {
  int lane = threadIdx.x;
  unsigned up_to_me = 0xffffffffu >> (31 - lane);
  unsigned even = __ballot_sync(0xffffffffu, in[lane] % 2 == 0) & up_to_me;
  rank[lane] = __popc(even);
}

int main() {
  int host[32], *d_in, *d_rank;
  for (int i = 0; i < 32; i++) host[i] = i * i / 3;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_rank, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  rank_of_even<<<1, 32>>>(d_in, d_rank);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_rank, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[10], host[31]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_rank));
  return 0;
}
