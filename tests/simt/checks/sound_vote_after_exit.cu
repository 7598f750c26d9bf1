// check: sound
// near: warp_divergence
// what: votes count the lanes of their mask that have not exited, so a full mask is right also after some have returned

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_large(const int* in, int n, int* count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned large = __ballot_sync(0xffffffff, in[i] > 50);
  bool all_small = __all_sync(0xffffffff, in[i] <= 50);
  if (!all_small && threadIdx.x % 32 == 0) atomicAdd(count, __popc(large));
}

int main() {
  const int n = 100;
  int host[n], count, *d_in, *d_count;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_count, sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_count, 0, sizeof(int)));
  count_large<<<2, 64>>>(d_in, n, d_count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", count);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_count));
  return 0;
}
