// check: sound
// near: misaligned
// what: casts of all kinds, each to a type whose alignment the address has

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define FLOAT4(value) (reinterpret_cast<float4*>(&(value))[0])
#define PAIR(p, i) (((const float2*)(p))[i])

struct Row { float4 left, right; };

template <class T>
__device__ T read_as(const void* p, size_t offset) {
  return *(const T*)((const char*)p + offset);
}

__global__ void convert(const float* in, float* out) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  if (i < 16) reinterpret_cast<float4*>(tile)[i] = ((const float4*)in)[i];
  __syncthreads();
  float mine[8];
  FLOAT4(mine[0]) = FLOAT4(tile[4 * (i % 8)]);
  FLOAT4(mine[4]) = *(float4 *)&tile[4 * (i % 8) + 4];
  const Row& row = reinterpret_cast<const Row&>(mine[0]);
  const float2 two = PAIR(tile, i % 32);
  const unsigned bits = *(unsigned*)&mine[1];
  float sum = row.left.x + row.right.w + two.x + two.y + read_as<float>(tile, 4 * i) + (float)(bits >> 31);
  for (float* at = (float*)mine; at < (float*)(mine + 8); at++) sum += *at;
  *((float*)out + i) = sum * (sizeof(float*) == 8 ? 1 : 2);
}

int main() {
  const int n = 64;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 7;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, n * sizeof(float)));
  convert<<<1, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
