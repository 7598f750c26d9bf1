// check: sound
// near: out_of_bounds
// what: whole float4s first; the elements left over are taken one by one

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void scale4(const float* in, float* out, int n, float factor) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i + 4 <= n) {
    float4 v = *reinterpret_cast<const float4*>(in + i);
    *reinterpret_cast<float4*>(out + i) = make_float4(factor * v.x, factor * v.y, factor * v.z, factor * v.w);
  } else {
    for (; i < n; i++) out[i] = factor * in[i];
  }
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
