// check: sound
// near: uninitialized
// what: the host copies all 256 values of a byte to the device, a kernel changes every third one, and another reads words

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void brighten(unsigned char* bytes, int n) {
  int i = 3 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) bytes[i] = bytes[i] / 2 + 64;
}

__global__ void add(const unsigned char* bytes, unsigned* sums, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i < n) sums[i] = reinterpret_cast<const unsigned*>(bytes)[i] % 255 + bytes[4 * i + 1];
}

int main() {
  const int n = 4096;
  unsigned char host[n], *bytes;
  unsigned *sums, result[n / 4];
  for (int i = 0; i < n; i++) host[i] = i * i / 7;
  CHECK(cudaMalloc(&bytes, n));
  CHECK(cudaMalloc(&sums, n));
  CHECK(cudaMemcpy(bytes, host, n, cudaMemcpyHostToDevice));
  brighten<<<11, 128>>>(bytes, n);
  add<<<8, 128>>>(bytes, sums, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(result, sums, n, cudaMemcpyDeviceToHost));
  printf("%u\n", result[1000]);
  CHECK(cudaFree(bytes));
  CHECK(cudaFree(sums));
}
