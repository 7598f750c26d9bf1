// check: sound
// near: warp_divergence
// what: all lanes vote before they part

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void saturate(const int* in, int* out, int* overflowed) {
  int lane = threadIdx.x, v = 3 * in[lane];
  int any = __any_sync(0xffffffff, lane % 2 == 0 && v > 100);
  if (lane % 2 == 0) {
    if (any && lane == 0) *overflowed = 1;
    v = min(v, 100);
  } else {
    v = max(v, 10);
  }
  __syncthreads();
  out[lane] = v;
}

int main() {
  int host[32], flag, *d_in, *d_out, *d_flag;
  for (int i = 0; i < 32; i++) host[i] = 2 * i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMalloc(&d_flag, sizeof(int)));
  CHECK(cudaMemset(d_flag, 0, sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  saturate<<<1, 32>>>(d_in, d_out, d_flag);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&flag, d_flag, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", host[1], host[30], flag);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  CHECK(cudaFree(d_flag));
  return 0;
}
