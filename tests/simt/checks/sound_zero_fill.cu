// check: sound
// near: misaligned
// what: arrays of structs, of vectors and local ones are filled with constants at aligned addresses

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Sample { float2 at; int4 label; };

__global__ void clear(float* buffer, Sample* samples, float2* waves, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  reinterpret_cast<float4*>(buffer + 4)[i] = make_float4(0.f, 0.f, 0.f, 0.f);
  samples[i].at = make_float2(1, 2);
  samples[i].label = int4{1, 2, 3, 4};
  if (i == 0) *(ushort2*)(buffer) = make_ushort2(1, 1);
  waves[i] = make_float2(0.f, 1.f);
  waves[i] = make_float2(waves[i].y, 1.f);
  float4 kept[2];
  kept[i % 2] = make_float4(1, 2, 3, 4);
  kept[1 - i % 2] = float4{4, 3, 2, 1};
  buffer[4 + 4 * i] = kept[0].x + samples[i].label.w;
}

int main() {
  const int n = 40;
  float *buffer, host;
  Sample* samples;
  float2* waves;
  CHECK(cudaMalloc(&buffer, (4 * n + 4) * sizeof(float)));
  CHECK(cudaMalloc(&samples, n * sizeof(Sample)));
  CHECK(cudaMalloc(&waves, n * sizeof(float2)));
  clear<<<1, 64>>>(buffer, samples, waves, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&host, buffer + 4, sizeof host, cudaMemcpyDeviceToHost));
  printf("%f\n", host);
  CHECK(cudaFree(buffer));
  CHECK(cudaFree(samples));
  CHECK(cudaFree(waves));
}
