// check: sound
// near: warp_divergence
// what: each half of the warp reduces on its own, with its own mask

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void half_maxima(const int* in, int* out) {
  int lane = threadIdx.x % 32, v = in[threadIdx.x];
  unsigned mask = lane < 16 ? 0x0000ffffu : 0xffff0000u;
  for (int d = 8; d > 0; d /= 2) v = max(v, __shfl_xor_sync(mask, v, d));
  if (lane % 16 == 0) out[threadIdx.x / 16] = v;
}

int main() {
  const int n = 64;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i * 29 % 61;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, n / 16 * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  half_maxima<<<1, n>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, n / 16 * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d %d\n", host[0], host[1], host[2], host[3]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
