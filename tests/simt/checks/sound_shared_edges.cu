// check: sound
// near: out_of_bounds
// what: pointers walk three shared arrays of odd lengths from the first element to the last one, and back

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void walk(const float* in, float* out) {
  __shared__ float left[31], middle[1], right[33];
  if (threadIdx.x == 0) {
    for (float* at = left; at < left + 31; at++) *at = in[at - left];
    for (float* at = right + 32; at >= right; at--) *at = in[31 + (at - right)];
    *middle = left[30] + right[0];
  }
  __syncthreads();
  int i = threadIdx.x;
  out[i] = *middle + (i < 31 ? left[i] : right[i - 31]);
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
  walk<<<1, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
