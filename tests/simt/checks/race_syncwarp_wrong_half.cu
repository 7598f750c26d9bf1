// check: race
// what: lanes 0 to 15 read what lanes 16 to 31 stored, and each half synchronises with itself alone
// array: line

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fold(const float* in, float* out) {
  __shared__ float line[32];
  int lane = threadIdx.x;
  line[lane] = in[lane];  // other
  __syncwarp(lane < 16 ? 0x0000ffff : 0xffff0000);
  if (lane < 16) out[lane] = line[lane] * line[31 - lane];  // defect
}

int main() {
  float host[32], *d_in, *d_out;
  for (int i = 0; i < 32; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  fold<<<1, 32>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, 16 * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[1], host[15]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
