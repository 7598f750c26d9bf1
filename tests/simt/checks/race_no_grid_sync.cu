// check: race
// what: a cooperative kernel's second phase reads what other blocks wrote in the first, with __syncthreads() alone in between
// array: row_max

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cooperative_groups.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

namespace cg = cooperative_groups;

__global__ void scale_by_maximum(const int* in, int* row_max, int* out, int rows) {
  cg::thread_block block = cg::this_thread_block();
  int row = blockIdx.x, v = in[row * 32 + threadIdx.x], top = v;
  for (int d = 16; d > 0; d /= 2) top = max(top, __shfl_xor_sync(0xffffffff, top, d));
  if (threadIdx.x == 0) row_max[row] = top;  // other
  block.sync();
  int all = 0;
  for (int r = 0; r < rows; r++) all = max(all, row_max[r]);  // defect
  out[row * 32 + threadIdx.x] = 100 * v / all;
}

int main() {
  int rows = 4, n = 32 * rows;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i + 1;
  int *d_in, *d_max, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_max, rows * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_max, 0, rows * sizeof(int)));
  void* arguments[] = {&d_in, &d_max, &d_out, &rows};
  CHECK(cudaLaunchCooperativeKernel((void*)scale_by_maximum, dim3(rows), dim3(32), arguments, 0, 0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  for (int* p : {d_in, d_max, d_out}) CHECK(cudaFree(p));
  return 0;
}
