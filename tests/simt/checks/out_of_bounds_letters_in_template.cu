// check: out_of_bounds
// what: a kernel template of one letter has a shared array of one letter that is one row too short for the halo
// array: c

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <typename T, int N>
__global__ void h(const T* a, T* b) {
  __shared__ T c[N + 1];
  int x = threadIdx.x;
  c[x + 1] = a[x];
  if (x == 0) {
    c[0] = 0;
    c[N + 1] = 0;  // defect
  }
  __syncthreads();
  b[x] = c[x] + c[x + 1];
}

int main() {
  double host[48], *a, *b;
  for (int i = 0; i < 48; i++) host[i] = i;
  CHECK(cudaMalloc(&a, sizeof host));
  CHECK(cudaMalloc(&b, sizeof host));
  CHECK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
  h<double, 48><<<1, 48>>>(a, b);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
  printf("%g\n", host[47]);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}
