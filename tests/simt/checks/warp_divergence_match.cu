// check: warp_divergence
// what: the lanes with a valid key look for equal keys with the full mask, while the others wait at the next line

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void group_sizes(const int* keys, int* sizes, int n) {
  int lane = threadIdx.x, size = 0;
  if (lane < n) {
    unsigned same = __match_any_sync(0xffffffff, keys[lane]);  // defect
    size = __popc(same);
  }
  __syncwarp();  // other
  sizes[lane] = size;
}

int main() {
  const int n = 24;
  int host[32], *d_keys, *d_sizes;
  for (int i = 0; i < n; i++) host[i] = i % 5;
  CHECK(cudaMalloc(&d_keys, n * sizeof(int)));
  CHECK(cudaMalloc(&d_sizes, sizeof(host)));
  CHECK(cudaMemcpy(d_keys, host, n * sizeof(int), cudaMemcpyHostToDevice));
  group_sizes<<<1, 32>>>(d_keys, d_sizes, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_sizes, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[31]);
  CHECK(cudaFree(d_keys));
  CHECK(cudaFree(d_sizes));
  return 0;
}
