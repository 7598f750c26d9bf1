// check: sound
// near: race
// what: one piece of shared memory holds first keys, then ranks, with a barrier between the two uses

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void inverse_ranks(const int* in, int* out) {
  __shared__ union { int keys[64]; short owner[128]; } both;
  int t = threadIdx.x, rank = 0;
  both.keys[t] = in[t];
  __syncthreads();
  for (int k = 0; k < 64; k++) rank += both.keys[k] < in[t];
  __syncthreads();
  both.owner[rank] = t;
  __syncthreads();
  out[t] = both.owner[t];
}

int main() {
  int host[64], *d_in, *d_out;
  for (int i = 0; i < 64; i++) host[i] = i * 27 % 64;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  inverse_ranks<<<1, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", host[0], host[1], host[63]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
