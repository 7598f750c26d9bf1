// check: out_of_bounds
// what: n is no multiple of 4, and the last thread's float4 reaches over the end of the input
// array: in
// block: (1,0,0)
// thread: (61,0,0)

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void scale4(const float* in, float* out, int n, float factor) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  float4 v = *reinterpret_cast<const float4*>(in + i);  // defect
  const float parts[4] = {v.x, v.y, v.z, v.w};
  for (int k = 0; k < 4 && i + k < n; k++) out[i + k] = factor * parts[k];
}

int main() {
  const int n = 501;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 9;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  scale4<<<2, 64>>>(d_in, d_out, n, 3.0f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[1], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
