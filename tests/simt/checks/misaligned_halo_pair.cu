// check: misaligned
// what: a float2 is read at the first element behind a halo of one float in shared memory
// array: line

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void pairs(const float* in, float2* out) {
  __shared__ __align__(16) float line[65];
  int i = threadIdx.x;
  line[i + 1] = in[i];
  if (i == 0) line[0] = 0;
  __syncthreads();
  if (i == 0) out[0] = *reinterpret_cast<float2*>(&line[1]);  // defect
}

int main() {
  float host[64] = {1, 2, 3}, *in;
  float2* out;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof(float2)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  pairs<<<1, 64>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof(float2), cudaMemcpyDeviceToHost));
  printf("%f\n", host[0]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
