// check: race
// what: a thread reads the element that another thread of the block stores, with no barrier in between
// array: tile

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void reverse(const int* in, int* out) {
  __shared__ int tile[128];
  int t = threadIdx.x, base = blockIdx.x * 128;
  tile[t] = in[base + t];  // other
  out[base + t] = tile[127 - t];  // defect
}

int main() {
  const int n = 512;
  int host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  reverse<<<n / 128, 128>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
