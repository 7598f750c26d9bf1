// check: uninitialized
// what: two 16-bit counters share a word, one of them is never set, and the same kernel reads the word
// array: words

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void pack(unsigned* words, unsigned* out) {
  unsigned short* halves = reinterpret_cast<unsigned short*>(words);
  int i = threadIdx.x;
  halves[2 * i] = 7 * i;
  __syncthreads();
  out[i] = words[(i + 1) % 64] >> 3;  // defect
}

int main() {
  unsigned *words, *out;
  CHECK(cudaMalloc(&words, 64 * sizeof(unsigned)));
  CHECK(cudaMalloc(&out, 64 * sizeof(unsigned)));
  pack<<<1, 64>>>(words, out);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(words));
  CHECK(cudaFree(out));
}
