// check: sound
// near: race
// what: a maximum in shared and in global memory; a thread whose value is no new maximum ends before the atomicCAS

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ void raise_to(float* address, float value) {
  int* bits = (int*)address;
  int old = *bits;
  while (value > __int_as_float(old)) {
    int assumed = old;
    old = atomicCAS(bits, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
}

__global__ void maxima(const float* in, float* out) {
  __shared__ float top;
  int t = threadIdx.x;
  if (t == 0) top = -1e30f;
  __syncthreads();
  float value = in[blockIdx.x * 64 + t];
  raise_to(&top, value);
  raise_to(out, value);
  __syncthreads();
  if (t == 0) out[1 + blockIdx.x] = top;
}

int main() {
  const int blocks = 6, n = 64 * blocks;
  float host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i * 37 % 101;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, sizeof(host)));
  maxima<<<blocks, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[1], host[64]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
