// check: sound
// near: race
// what: shared halves, two in a word, each written by a thread of its own

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>
#include <cuda_fp16.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void rounded(const float* in, float* out) {
  __shared__ __half line[64];
  int t = threadIdx.x;
  line[t] = __float2half(in[t]);
  __syncthreads();
  out[t] = __half2float(line[63 - t]);
}

int main() {
  float host[64], *d_in, *d_out;
  for (int i = 0; i < 64; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  rounded<<<1, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[63]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
