// check: race
// what: four threads store the four 2-bit codes of one byte by read, change, write: updates get lost
// array: packed

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void encode(const int* in, unsigned char* packed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int code = in[i] < 0 ? 0 : in[i] == 0 ? 1 : 2;
  packed[i / 4] |= code << 2 * (i % 4);  // defect
}

int main() {
  const int n = 256;
  int host[n], *d_in;
  unsigned char packed[n], *d_packed;
  for (int i = 0; i < n; i++) host[i] = i % 5 - 2;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_packed, n));
  CHECK(cudaMemset(d_packed, 0, n));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  encode<<<2, 128>>>(d_in, d_packed, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(packed, d_packed, n, cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", packed[0], packed[1], packed[n / 4 - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_packed));
  return 0;
}
