// check: sound
// near: race
// what: cub's block reduction twice over one temporary storage, with a barrier between the two

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cub/cub.cuh>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void mean_and_deviation(const int* in, int* out) {
  typedef cub::BlockReduce<int, 96> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ int mean;
  int v = in[blockIdx.x * 96 + threadIdx.x];
  int sum = Reduce(storage).Sum(v);
  if (threadIdx.x == 0) mean = sum / 96;
  __syncthreads();
  int deviation = Reduce(storage).Sum(abs(v - mean));
  if (threadIdx.x == 0) {
    out[2 * blockIdx.x] = mean;
    out[2 * blockIdx.x + 1] = deviation;
  }
}

int main() {
  const int blocks = 3, n = 96 * blocks;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 50;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, 2 * blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  mean_and_deviation<<<blocks, 96>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, 2 * blocks * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 2 * blocks; i++) printf("%d ", host[i]);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
