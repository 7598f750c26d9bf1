// check: out_of_bounds
// what: a lookup table in global memory (__device__) has an entry for 0 … 255, and the sum of two bytes can be larger
// array: squares

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int squares[256];

__global__ void fill() { squares[threadIdx.x] = threadIdx.x * threadIdx.x; }

__global__ void square_of_sum(const unsigned char* a, const unsigned char* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = a[i] + b[i];
  out[i] = squares[sum];  // defect
}

int main() {
  const int n = 90;
  unsigned char a[n], b[n], *d_a, *d_b;
  int out[n], *d_out;
  for (int i = 0; i < n; i++) a[i] = 2 * i, b[i] = i;
  CHECK(cudaMalloc(&d_a, n));
  CHECK(cudaMalloc(&d_b, n));
  CHECK(cudaMalloc(&d_out, sizeof(out)));
  CHECK(cudaMemcpy(d_a, a, n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b, n, cudaMemcpyHostToDevice));
  fill<<<1, 256>>>();
  CHECK(cudaGetLastError());
  square_of_sum<<<3, 32>>>(d_a, d_b, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  printf("%d %d\n", out[1], out[80]);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_out));
  return 0;
}
