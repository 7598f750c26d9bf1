// check: schedule
// what: the largest value occurs several times, and the index is that of the thread that came first

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void argmax(const int* in, int n, int* top, int* index) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] == *top) atomicCAS(index, -1, i);  // defect
}

__global__ void largest(const int* in, int n, int* top) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(top, in[i]);
}

int main() {
  const int n = 150;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i * 3 % 20;
  int top = 0, index = -1, *d_in, *d_top, *d_index;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMalloc(&d_top, sizeof(int)));
  CHECK(cudaMalloc(&d_index, sizeof(int)));
  CHECK(cudaMemcpy(d_top, &top, sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_index, &index, sizeof(int), cudaMemcpyHostToDevice));
  largest<<<5, 32>>>(d_in, n, d_top);
  argmax<<<5, 32>>>(d_in, n, d_top, d_index);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&top, d_top, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&index, d_index, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d at %d\n", top, index);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_top));
  CHECK(cudaFree(d_index));
  return 0;
}
