// check: sound
// near: race
// what: asynchronous copies into three buffers in turn need one barrier a step: the buffer that is filled again was read before it

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cuda_pipeline.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define B 64

__global__ void stage_sums(const float4* in, float* out, int tiles) {
  __shared__ float4 stage[3][B];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&stage[0][t], &in[t], sizeof(float4));
  __pipeline_commit();
  __pipeline_memcpy_async(&stage[1][t], &in[B + t], sizeof(float4));
  __pipeline_commit();
  float sum = 0;
  for (int tile = 0; tile < tiles; tile++) {
    __pipeline_wait_prior(1);
    __syncthreads();
    if (tile + 2 < tiles) __pipeline_memcpy_async(&stage[(tile + 2) % 3][t], &in[(tile + 2) * B + t], sizeof(float4));
    __pipeline_commit();
    float4 v = stage[tile % 3][B - 1 - t];
    sum += v.x + v.y + v.z + v.w;
  }
  out[t] = sum;
}

int main() {
  const int tiles = 5, n = 4 * B * tiles;
  std::vector<float> host(n), sums(B);
  for (int i = 0; i < n; i++) host[i] = i % 16;
  float4* d_in;
  float* d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, B * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  stage_sums<<<1, B>>>(d_in, d_out, tiles);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_out, B * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g %g\n", sums[0], sums[B - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
