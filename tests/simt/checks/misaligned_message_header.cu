// check: misaligned
// what: a message begins with a type byte, and its length is read as an int right behind it
// array: packets

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int PACKET = 16;

__device__ int length_of(const unsigned char* packet) {
  return *(const int*)(packet + 1);  // defect
}

__global__ void measure(const unsigned char* packets, int* lengths, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) lengths[i] = length_of(packets + PACKET * i);
}

int main() {
  const int n = 40;
  std::vector<unsigned char> host(n * PACKET, 3);
  unsigned char* packets;
  int* lengths;
  CHECK(cudaMalloc(&packets, host.size()));
  CHECK(cudaMalloc(&lengths, n * sizeof(int)));
  CHECK(cudaMemcpy(packets, host.data(), host.size(), cudaMemcpyHostToDevice));
  measure<<<2, 32>>>(packets, lengths, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(packets));
  CHECK(cudaFree(lengths));
}
