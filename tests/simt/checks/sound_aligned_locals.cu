// check: sound
// near: misaligned
// what: local and shared float arrays are aligned to 16 bytes before they are used as float4

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct __align__(16) Quad { float v[4]; };

__global__ void scale(const float4* in, float4* out, float factor) {
  __shared__ alignas(16) float tile[32 * 4];
  __align__(16) float mine[8];
  int i = threadIdx.x;
  *reinterpret_cast<float4*>(mine + 4) = in[i];
  Quad q;
  for (int k = 0; k < 4; k++) q.v[k] = mine[4 + k] * factor;
  *reinterpret_cast<float4*>(&tile[4 * i]) = *reinterpret_cast<float4*>(&q);
  __syncthreads();
  out[i] = reinterpret_cast<float4*>(tile)[31 - i];
  float2 middle = *reinterpret_cast<float2*>(&tile[4 * i + 2]);
  out[i].x += middle.x + middle.y;
}

int main() {
  float host[128];
  for (int i = 0; i < 128; i++) host[i] = i;
  float4 *in, *out;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  scale<<<1, 32>>>(in, out, 2.f);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%f\n", host[0]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
