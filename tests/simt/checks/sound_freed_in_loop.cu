// check: sound
// near: leak
// what: each round frees the buffer that it allocated

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fill(int* out, int n, int value) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = value * i;
}

int main() {
  int last = 0, sum = 0;
  int* d_out = nullptr;
  for (int n = 32; n <= 128; n *= 2) {
    CHECK(cudaMalloc(&d_out, n * sizeof(int)));
    fill<<<1, 32>>>(d_out, n, 3);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&last, d_out + n - 1, sizeof(int), cudaMemcpyDeviceToHost));
    sum += last;
    CHECK(cudaFree(d_out));
  }
  printf("%d\n", sum);
  return 0;
}
