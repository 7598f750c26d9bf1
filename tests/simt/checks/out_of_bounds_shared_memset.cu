// check: out_of_bounds
// what: a shared table is cleared with its number of elements times the size of the whole table
// array: table

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count(const unsigned char* text, int n, int* out) {
  __shared__ int table[128];
  __shared__ int vowels;
  if (threadIdx.x == 0) {
    memset(table, 0, 128 * sizeof(table));  // defect
    vowels = 0;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&table[text[i] % 128], 1);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = table['a'] + vowels;
}

int main() {
  const int n = 300;
  unsigned char host[n], *text;
  int* out;
  for (int i = 0; i < n; i++) host[i] = 'a' + i % 26;
  CHECK(cudaMalloc(&text, n));
  CHECK(cudaMalloc(&out, sizeof(int)));
  CHECK(cudaMemcpy(text, host, n, cudaMemcpyHostToDevice));
  count<<<1, 64>>>(text, n, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(text);
  cudaFree(out);
}
