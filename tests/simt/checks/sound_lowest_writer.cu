// check: sound
// near: schedule
// what: of several hits the lowest one stays, in any order, by atomicMin

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void find(const char* text, int n, char wanted, int* where) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && text[i] == wanted) atomicMin(where, i);
}

int main() {
  const char text[] = "a needle, and another needle, and one more needle in a haystack";
  const int n = sizeof(text) - 1;
  char* d_text;
  int where = n, *d_where;
  CHECK(cudaMalloc(&d_text, n));
  CHECK(cudaMalloc(&d_where, sizeof(int)));
  CHECK(cudaMemcpy(d_text, text, n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_where, &where, sizeof(int), cudaMemcpyHostToDevice));
  find<<<4, 16>>>(d_text, n, 'n', d_where);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&where, d_where, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", where);
  CHECK(cudaFree(d_text));
  CHECK(cudaFree(d_where));
  return 0;
}
