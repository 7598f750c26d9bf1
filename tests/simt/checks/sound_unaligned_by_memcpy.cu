// check: sound
// near: misaligned
// what: values at odd addresses are read and written by memcpy or byte by byte, and wide ones at multiples of their size

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ unsigned read_bytes(const unsigned char* p) {
  return p[0] | p[1] << 8 | p[2] << 16 | unsigned(p[3]) << 24;
}

template <class T>
__device__ T read(const void* p) {
  T value;
  memcpy(&value, p, sizeof value);
  return value;
}

__global__ void parse(const unsigned char* packets, unsigned* lengths, double* values, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  const unsigned char* packet = packets + 13 * i;
  lengths[i] = read_bytes(packet + 1) + read<short>(packet + 11);
  values[i] = read<double>(packet + 3);
  const uint4 wide = *reinterpret_cast<const uint4*>(packets + 16 * (i / 2));
  lengths[i] ^= wide.x;
}

int main() {
  const int n = 32;
  std::vector<unsigned char> host(16 * n);
  for (unsigned i = 0; i < host.size(); i++) host[i] = i;
  unsigned char* packets;
  unsigned* lengths;
  double* values;
  CHECK(cudaMalloc(&packets, host.size()));
  CHECK(cudaMalloc(&lengths, n * sizeof(unsigned)));
  CHECK(cudaMalloc(&values, n * sizeof(double)));
  CHECK(cudaMemcpy(packets, host.data(), host.size(), cudaMemcpyHostToDevice));
  parse<<<1, n>>>(packets, lengths, values, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), lengths, 4, cudaMemcpyDeviceToHost));
  printf("%d\n", host[0]);
  CHECK(cudaFree(packets));
  CHECK(cudaFree(lengths));
  CHECK(cudaFree(values));
}
