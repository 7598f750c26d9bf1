// check: out_of_bounds
// what: the device array t has 64 elements, and the last thread of kernel m reads the one behind them
// array: t
// index: 64
// thread: (63, 0, 0)

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ float t[64];
__device__ float far_away[1024];

__global__ void m(const float* in, float* out, int n) {
  int i = threadIdx.x;
  far_away[16 * i] = in[i];
  t[i] = in[i];
  __syncthreads();
  out[i] = t[i + n] + far_away[16 * i];  // defect
}

int main() {
  const int n = 64;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 7;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, n * sizeof(float)));
  m<<<1, 64>>>(d_in, d_out, 1);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
