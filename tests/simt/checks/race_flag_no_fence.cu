// check: race
// what: the producer raises its flag with no fence behind the data: the consumer may see the flag first
// array: carry

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int next_ticket = 0;

__global__ void chained_sum(const int* in, int* out, int* carry, int* flags) {
  __shared__ int ticket, before;
  if (threadIdx.x == 0) ticket = atomicAdd(&next_ticket, 1);  // in order of arrival, so a predecessor is already running
  __syncthreads();
  int v = in[ticket * 32 + threadIdx.x];
  for (int d = 1; d < 32; d *= 2) {
    int left = __shfl_up_sync(0xffffffff, v, d);
    if (threadIdx.x >= d) v += left;
  }
  if (threadIdx.x == 31) {
    before = 0;
    if (ticket > 0) {
      while (atomicAdd(&flags[ticket - 1], 0) == 0) {}
      before = carry[ticket - 1];  // defect
    }
    carry[ticket] = before + v;  // other
    atomicExch(&flags[ticket], 1);
  }
  __syncthreads();
  out[ticket * 32 + threadIdx.x] = before + v;
}

int main() {
  const int blocks = 6, n = 32 * blocks;
  std::vector<int> host(n, 2);
  int *d_in, *d_out, *d_carry, *d_flags;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMalloc(&d_carry, blocks * sizeof(int)));
  CHECK(cudaMalloc(&d_flags, blocks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_flags, 0, blocks * sizeof(int)));
  CHECK(cudaMemset(d_carry, 0, blocks * sizeof(int)));
  chained_sum<<<blocks, 32>>>(d_in, d_out, d_carry, d_flags);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  for (int* p : {d_in, d_out, d_carry, d_flags}) CHECK(cudaFree(p));
  return 0;
}
