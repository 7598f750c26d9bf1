// check: sound
// near: uninitialized
// what: some threads fill their elements of the shared arrays, and under the same condition the same threads read them, without a barrier

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void clip_edges(const float* in, float* out, int n, float limit) {
  __shared__ float saved[128];
  __shared__ bool clipped[128];
  int t = threadIdx.x, i = blockIdx.x * 128 + t;
  if (i < n && in[i] > limit) {
    saved[t] = in[i] - limit;
    clipped[t] = true;
  } else {
    clipped[t] = false;
  }
  float rest = clipped[t] ? saved[t] : 0.0f;
  if (i < n) out[i] = clipped[t] ? limit + 0.5f * rest : in[i];
}

int main() {
  const int n = 200;
  float host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i % 10;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  clip_edges<<<2, 128>>>(d_in, d_out, n, 6.0f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%g %g\n", host[5], host[9]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
