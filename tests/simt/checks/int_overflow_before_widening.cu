// check: int_overflow
// what: the tensor's strides are multiplied as int, and only the overflowed product is widened to 64 bits

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void fetch(const unsigned char* ring, int ring_size, int* out, int batch, int channels, int height, int width) {
  int b = blockIdx.x * blockDim.x + threadIdx.x;
  if (b >= batch) return;
  long long start = b * channels * height * width;  // defect
  long long wrapped = start % ring_size;
  out[b] = ring[wrapped < 0 ? wrapped + ring_size : wrapped];
}

int main() {
  const int batch = 100, ring_size = 1000;
  unsigned char ring[ring_size], *d_ring;
  int out[batch], *d_out;
  for (int i = 0; i < ring_size; i++) ring[i] = i % 251;
  CHECK(cudaMalloc(&d_ring, ring_size));
  CHECK(cudaMalloc(&d_out, sizeof(out)));
  CHECK(cudaMemcpy(d_ring, ring, ring_size, cudaMemcpyHostToDevice));
  fetch<<<1, 128>>>(d_ring, ring_size, d_out, batch, 512, 333, 333);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  printf("%d %d\n", out[1], out[batch - 1]);
  CHECK(cudaFree(d_ring));
  CHECK(cudaFree(d_out));
  return 0;
}
