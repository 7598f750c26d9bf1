// check: sound
// near: device_assert
// what: assertions on shared, local and constant values hold in every thread

#include <cassert>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__constant__ int limits[2] = {0, 100};

__global__ void fold(const int* in, int* out) {
  __shared__ int tile[32];
  int kept[2] = {in[threadIdx.x], in[31 - threadIdx.x]};
  tile[threadIdx.x] = kept[0] + kept[1];
  __syncthreads();
  assert(tile[threadIdx.x] == tile[31 - threadIdx.x]);
  assert(kept[0] >= limits[0] && kept[1] < limits[1] && "inputs are percentages");
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  int host[32], *in, *out;
  for (int i = 0; i < 32; i++) host[i] = 3 * i;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  fold<<<1, 32>>>(in, out);
  cudaError_t error = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("%s %d\n", cudaGetErrorString(error), host[0]);
  cudaFree(in);
  cudaFree(out);
}
