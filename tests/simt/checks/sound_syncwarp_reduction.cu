// check: sound
// near: race
// what: the last warp reduces in shared memory, with __syncwarp() between reading and writing

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sum(const float* in, float* out) {
  __shared__ float part[64];
  int t = threadIdx.x;
  part[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    for (int offset = 32; offset > 0; offset /= 2) {
      float mine = part[t] + part[t + offset];
      __syncwarp();
      part[t] = mine;
      __syncwarp();
    }
    if (t == 0) out[blockIdx.x] = part[0];
  }
}

int main() {
  const int blocks = 3, n = 64 * blocks;
  float host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, blocks * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  sum<<<blocks, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, blocks * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[1], host[2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
