// check: barrier_divergence
// what: threads past n return before the barrier that the others of their block wait at

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void running_pairs(const float* in, float* out, int n) {
  __shared__ float tile[128];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (i >= n) return;
  tile[t] = in[i];
  __syncthreads();  // defect
  float before = t > 0 ? tile[t - 1] : i > 0 ? in[i - 1] : 0.0f;
  out[i] = before + tile[t];
}

int main() {
  const int n = 333, threads = 128;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  running_pairs<<<(n + threads - 1) / threads, threads>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[128], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
