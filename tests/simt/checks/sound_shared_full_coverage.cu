// check: sound
// near: uninitialized
// what: even threads set one half of the shared table and odd ones the other: together they set all of it

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void window(const float* in, float* out, int n) {
  __shared__ float weights[64];
  int t = threadIdx.x;
  if (t % 2 == 0) weights[t / 2] = t;
  else weights[63 - t / 2] = 64 - t;
  __syncthreads();
  for (int i = t; i < n; i += 64) {
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += weights[k] * in[(i + k) % n];
    out[i] = sum;
  }
}

int main() {
  const int n = 100;
  float host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 2;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  window<<<1, 64>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%g %g\n", host[0], host[1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
