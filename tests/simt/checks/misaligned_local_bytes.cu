// check: misaligned
// what: a header of three bytes stands before an int in a thread's own buffer, which is read as an int
// array: buffer

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void parse(const float* in, float* out) {
  unsigned char buffer[16];
  int i = threadIdx.x;
  for (int k = 0; k < 16; k++) buffer[k] = in[k];
  out[i] = *(int*)(buffer + 3);  // defect
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
  parse<<<1, 32>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
