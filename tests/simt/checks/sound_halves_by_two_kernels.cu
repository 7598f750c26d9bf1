// check: sound
// near: uninitialized
// what: one kernel writes the even halves and the next the odd ones, among them all 65536 values

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fill(unsigned short* x, int parity) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  x[2 * i + parity] = static_cast<unsigned short>(i);
}

__global__ void count(const ushort2* x, int* equal) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  ushort2 pair = x[i];
  if (pair.x == pair.y) atomicAdd(equal, 1);
}

int main() {
  unsigned short* x;
  int *equal, host;
  CHECK(cudaMalloc(&x, 2 * 65536 * sizeof(short)));
  CHECK(cudaMalloc(&equal, sizeof(int)));
  CHECK(cudaMemset(equal, 0, sizeof(int)));
  fill<<<256, 256>>>(x, 0);
  fill<<<256, 256>>>(x, 1);
  count<<<256, 256>>>(reinterpret_cast<ushort2*>(x), equal);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&host, equal, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host);
  CHECK(cudaFree(x));
  CHECK(cudaFree(equal));
}
