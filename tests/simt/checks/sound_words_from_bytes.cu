// check: sound
// near: uninitialized
// what: four threads each write a byte of a word of global memory before a fifth reads it, and some bytes are 0xff

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void join(const int* in, unsigned char* bytes, unsigned* words) {
  int i = threadIdx.x;
  bytes[i] = in[i];
  __syncthreads();
  if (i < 64) words[i] = reinterpret_cast<const unsigned*>(bytes)[63 - i];
}

__global__ void unpack(const unsigned* words, uchar4* colours) {
  unsigned w = words[threadIdx.x];
  colours[threadIdx.x] = make_uchar4(w, w >> 8, w >> 16, w >> 24);
}

int main() {
  int host[256], *in;
  unsigned char* bytes;
  unsigned* words;
  uchar4* colours;
  for (int i = 0; i < 256; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&bytes, 256));
  CHECK(cudaMalloc(&words, 256));
  CHECK(cudaMalloc(&colours, 256));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  join<<<1, 256>>>(in, bytes, words);
  unpack<<<1, 64>>>(words, colours);
  CHECK(cudaGetLastError());
  uchar4 result[64];
  CHECK(cudaMemcpy(result, colours, sizeof result, cudaMemcpyDeviceToHost));
  printf("%d %d\n", result[0].x, result[63].w);
  CHECK(cudaFree(in));
  CHECK(cudaFree(bytes));
  CHECK(cudaFree(words));
  CHECK(cudaFree(colours));
}
