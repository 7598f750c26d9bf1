// check: sound
// near: race
// what: bins in global memory, counted with atomicAdd by all blocks

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void histogram(const unsigned char* text, int n, int* bins) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    int letter = text[i] - 'a';
    if (letter >= 0 && letter < 26) atomicAdd(&bins[letter], 1);
  }
}

int main() {
  const char text[] = "the quick brown fox jumps over the lazy dog while five boxing wizards jump quickly";
  const int n = sizeof(text) - 1;
  unsigned char* d_text;
  int bins[26], *d_bins;
  CHECK(cudaMalloc(&d_text, n));
  CHECK(cudaMalloc(&d_bins, sizeof(bins)));
  CHECK(cudaMemcpy(d_text, text, n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_bins, 0, sizeof(bins)));
  histogram<<<2, 16>>>(d_text, n, d_bins);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(bins, d_bins, sizeof(bins), cudaMemcpyDeviceToHost));
  for (int count : bins) printf("%d ", count);
  printf("\n");
  CHECK(cudaFree(d_text));
  CHECK(cudaFree(d_bins));
  return 0;
}
