// check: schedule
// what: each thread puts its element at its bucket's front, so the lists' order is the reverse of the threads'

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void push(const int* in, int n, int* heads, int* next) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) next[i] = atomicExch(&heads[in[i] % 4], i);  // defect
}

int main() {
  const int n = 60;
  int host[n], heads[4], next[n], *d_in, *d_heads, *d_next;
  for (int i = 0; i < n; i++) host[i] = i * i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_heads, sizeof(heads)));
  CHECK(cudaMalloc(&d_next, sizeof(next)));
  CHECK(cudaMemset(d_heads, 0xff, sizeof(heads)));  // -1: the list's end
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  push<<<2, 32>>>(d_in, n, d_heads, d_next);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(heads, d_heads, sizeof(heads), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(next, d_next, sizeof(next), cudaMemcpyDeviceToHost));
  for (int b = 0; b < 4; b++) {
    for (int i = heads[b]; i >= 0; i = next[i]) printf("%d ", i);
    printf("\n");
  }
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_heads));
  CHECK(cudaFree(d_next));
  return 0;
}
