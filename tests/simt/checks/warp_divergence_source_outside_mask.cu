// check: warp_divergence
// what: eight lanes shuffle among themselves and read from lane 8, which is not in their mask
// block: (0,0,0)

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void normalize(const float* in, float* out) {
  int lane = threadIdx.x;
  float v = in[lane];
  if (lane < 8) {
    float reference = __shfl_sync(0xff, v, 8);  // defect
    out[lane] = v / reference;
  } else {
    out[lane] = v;
  }
}

int main() {
  float host[32], *d_in, *d_out;
  for (int i = 0; i < 32; i++) host[i] = 1 << i % 8;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  normalize<<<1, 32>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%g %g %g\n", host[0], host[7], host[31]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
