// check: race
// what: tiles are loaded in a loop with a barrier after the load, and none before the next pass loads again
// array: tile
// says: in one pass of the loop
// says: in the next

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void dot(const float* a, const float* b, float* out, int n) {
  __shared__ float tile[64];
  float sum = 0;
  for (int from = 0; from < n; from += 64) {
    tile[threadIdx.x] = a[from + threadIdx.x];  // other
    __syncthreads();
    for (int k = 0; k < 64; k++)
      sum += tile[(threadIdx.x + k) % 64] * b[from + k];  // defect
  }
  out[threadIdx.x] = sum;
}

int main() {
  const int n = 256;
  float host[n], *a, *b, *out;
  for (int i = 0; i < n; i++) host[i] = i;
  cudaMalloc(&a, sizeof host);
  cudaMalloc(&b, sizeof host);
  cudaMalloc(&out, 64 * sizeof(float));
  cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice);
  dot<<<1, 64>>>(a, b, out, n);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(a);
  cudaFree(b);
  cudaFree(out);
}
