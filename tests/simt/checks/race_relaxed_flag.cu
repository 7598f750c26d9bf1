// check: race
// what: the flag is stored and read with relaxed order, which hands nothing over but the flag itself
// array: mailbox

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cuda/atomic>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__device__ int arrived = 0;

__global__ void relay(const int* in, int* mailbox, int* flags, int* out) {
  __shared__ int turn, token;
  if (threadIdx.x == 0) {
    turn = atomicAdd(&arrived, 1);
    token = 0;
    if (turn > 0) {
      cuda::atomic_ref<int, cuda::thread_scope_device> before(flags[turn - 1]);
      while (before.load(cuda::memory_order_relaxed) == 0) {}
      token = mailbox[turn - 1];  // defect
    }
    mailbox[turn] = token + in[turn];  // other
    cuda::atomic_ref<int, cuda::thread_scope_device> mine(flags[turn]);
    mine.store(1, cuda::memory_order_relaxed);
  }
  __syncthreads();
  out[turn * 32 + threadIdx.x] = token;
}

int main() {
  const int blocks = 5, n = 32 * blocks;
  std::vector<int> host(n, 10);
  int *d_in, *d_mailbox, *d_flags, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_mailbox, blocks * sizeof(int)));
  CHECK(cudaMalloc(&d_flags, blocks * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_mailbox, 0, blocks * sizeof(int)));
  CHECK(cudaMemset(d_flags, 0, blocks * sizeof(int)));
  relay<<<blocks, 32>>>(d_in, d_mailbox, d_flags, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  for (int* p : {d_in, d_mailbox, d_flags, d_out}) CHECK(cudaFree(p));
  return 0;
}
