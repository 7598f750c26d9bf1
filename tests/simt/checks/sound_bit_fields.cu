// check: sound
// near: uninitialized
// what: bit fields of a word are set one after the other in a local record before it is stored

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Packed {
  unsigned red : 5, green : 6, blue : 5, depth : 16;
};

__global__ void pack(const int* in, Packed* out) {
  Packed p{};
  int i = threadIdx.x;
  p.red = in[i];
  p.green = in[i] / 2;
  p.blue = 31;
  p.depth = i;
  out[i] = p;
  __syncthreads();
  if (i > 0) out[i].depth += out[i].red;
}

int main() {
  int host[64], *in;
  Packed* out;
  for (int i = 0; i < 64; i++) host[i] = i % 32;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  pack<<<1, 64>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%x\n", host[9]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
