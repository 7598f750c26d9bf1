// check: sound
// near: misaligned
// what: the struct is packed, so that the compiler reads its int byte by byte, and memcpy puts another one together

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct __attribute__((packed)) Record { char tag; int value; };

__device__ Record records[4];

__global__ void parse(const float* in, float* out) {
  unsigned char buffer[16];
  int i = threadIdx.x;
  for (int k = 0; k < 16; k++) buffer[k] = in[k];
  if (i < 4) {
    records[i].tag = i;
    records[i].value = in[i];
    int value;
    memcpy(&value, buffer + 3, sizeof value);
    out[i] = records[i].value + value;
  }
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
