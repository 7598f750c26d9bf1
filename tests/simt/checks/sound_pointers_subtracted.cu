// check: sound
// near: int_overflow
// what: differences of pointers and 64-bit products stand where 32-bit ones would overflow, and hashes are unsigned

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ uint32_t hash(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

__global__ void place(const int* from, const int* to, int64_t* out, int side) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int* at = from + i;
  if (at >= to) return;
  int64_t cells = int64_t(side) * side;
  out[i] = cells + (to - at) + hash(i) % 7 + abs(-*at);
}

int main() {
  const int n = 90;
  int host[n], *in;
  int64_t *out, result[n];
  for (int i = 0; i < n; i++) host[i] = 2147483647 - i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof result));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  place<<<3, 32>>>(in, in + n, out, 1 << 20);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
  printf("%lld\n", (long long)result[89]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
