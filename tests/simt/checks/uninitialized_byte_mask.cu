// check: uninitialized
// what: the first kernel marks what to keep and does not unmark the rest, whose bytes are as cudaMalloc left them
// array: keep

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void mark(const float* x, unsigned char* keep, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 0.5f) keep[i] = 1;
}

__global__ void count_kept(const unsigned char* keep, int n, int* kept) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool mine = i < n && keep[i];  // defect
  int count = __syncthreads_count(mine);
  if (threadIdx.x == 0) atomicAdd(kept, count);
}

int main() {
  const int n = 200;
  float x[n], *d_x;
  unsigned char* d_keep;
  int kept, *d_kept;
  for (int i = 0; i < n; i++) x[i] = i % 4 * 0.25f;
  CHECK(cudaMalloc(&d_x, sizeof(x)));
  CHECK(cudaMalloc(&d_keep, n));
  CHECK(cudaMalloc(&d_kept, sizeof(int)));
  CHECK(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_kept, 0, sizeof(int)));
  mark<<<4, 64>>>(d_x, d_keep, n);
  CHECK(cudaGetLastError());
  count_kept<<<4, 64>>>(d_keep, n, d_kept);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&kept, d_kept, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", kept);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_keep));
  CHECK(cudaFree(d_kept));
  return 0;
}
