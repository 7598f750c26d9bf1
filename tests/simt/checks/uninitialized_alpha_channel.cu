// check: uninitialized
// what: a kernel writes red, green and blue of each pixel, and another reads the pixel with its alpha
// array: pixels

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void colour(unsigned char* bytes, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bytes[4 * i] = i;
  bytes[4 * i + 1] = i / 2;
  bytes[4 * i + 2] = 255 - i;
}

__global__ void brightness(const unsigned char* pixels, int* sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int sum = 0;
  for (int c = 0; c < 4; c++) sum += pixels[4 * i + c];  // defect
  sums[i] = sum;
}

int main() {
  const int n = 100;
  unsigned char* bytes;
  int* sums;
  CHECK(cudaMalloc(&bytes, 4 * n));
  CHECK(cudaMalloc(&sums, n * sizeof(int)));
  colour<<<2, 64>>>(bytes, n);
  brightness<<<2, 64>>>(bytes, sums, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(bytes));
  CHECK(cudaFree(sums));
}
