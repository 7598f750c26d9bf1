// check: race
// what: threads of a block pass values through global memory without a barrier
// array: scratch

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void butterfly(const float* in, float* scratch, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  scratch[i] = in[i];  // other
  float partner = scratch[i ^ 64];  // defect
  out[i] = i & 64 ? partner - in[i] : partner + in[i];
}

int main() {
  const int n = 256;
  float host[n], *d_in, *d_scratch, *d_out;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_scratch, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_scratch, 0, sizeof(host)));
  butterfly<<<2, 128>>>(d_in, d_scratch, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[64]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_scratch));
  CHECK(cudaFree(d_out));
  return 0;
}
