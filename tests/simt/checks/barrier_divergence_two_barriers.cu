// check: barrier_divergence
// what: even and odd threads wait at different barriers, each in its own branch

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void exchange(const float* in, float* out) {
  __shared__ float left[64], right[64];
  int t = threadIdx.x, i = blockIdx.x * 64 + t;
  bool first = t % 2 == 0;
  if (first) {
    left[t] = in[i];
    __syncthreads();  // defect
    out[i] = right[t + 1];
  } else {
    right[t] = 2 * in[i];
    __syncthreads();  // other
    out[i] = left[t - 1];
  }
}

int main() {
  const int n = 256;
  float host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  exchange<<<n / 64, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[65]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
