// check: sound
// near: barrier_divergence
// what: the loop with the barriers runs over chunks, as often for every thread of the block; only the access is guarded

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void chunk_maxima(const int* in, int* out, int n) {
  __shared__ int top;
  for (int start = blockIdx.x * blockDim.x; start < n; start += gridDim.x * blockDim.x) {
    int i = start + threadIdx.x;
    if (threadIdx.x == 0) top = 0;
    __syncthreads();
    if (i < n) atomicMax(&top, in[i]);
    __syncthreads();
    if (threadIdx.x == 0) out[i / blockDim.x] = top;
    __syncthreads();
  }
}

int main() {
  const int n = 300, threads = 64, chunks = (n + threads - 1) / threads;
  std::vector<int> host(n), maxima(chunks);
  for (int i = 0; i < n; i++) host[i] = i * 37 % 101;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, chunks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  chunk_maxima<<<2, threads>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(maxima.data(), d_out, chunks * sizeof(int), cudaMemcpyDeviceToHost));
  for (int m : maxima) printf("%d ", m);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
