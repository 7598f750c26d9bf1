// check: out_of_bounds
// what: the launch asks for as many floats of shared memory as threads, and the kernel keeps two more, for the halo
// array: window

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void smooth(const float* in, float* out, int n) {
  extern __shared__ float window[];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  window[t + 1] = i < n ? in[i] : 0.0f;  // defect
  if (t == 0) {
    int last = blockDim.x + 1, end = (blockIdx.x + 1) * blockDim.x;
    window[0] = i > 0 ? in[i - 1] : 0.0f;
    window[last] = end < n ? in[end] : 0.0f;  // other
  }
  __syncthreads();
  if (i < n) out[i] = window[t] + 2 * window[t + 1] + window[t + 2];  // other
}

int main() {
  const int n = 200, threads = 64, blocks = (n + threads - 1) / threads;
  std::vector<float> host(n, 1.0f);
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  smooth<<<blocks, threads, threads * sizeof(float)>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[threads], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
