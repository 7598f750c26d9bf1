// check: misaligned
// what: a macro writes four floats at once behind a header of one float in a device array
// array: message

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])

__device__ float message[12];

__global__ void pack(const float* in, float* out) {
  message[0] = 8;
  FLOAT4(message[1]) = make_float4(in[0], in[1], in[2], in[3]);  // defect
  out[0] = message[0] + message[4];
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
  pack<<<1, 1>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
