// check: sound
// near: warp_divergence
// what: before the threads past n return, a ballot says who stays; the others shuffle with that mask

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void neighbour_maximum(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned staying = __ballot_sync(0xffffffff, i < n);
  if (i >= n) return;
  int v = in[i];
  int right_lane = lane < 31 && staying >> (lane + 1) & 1 ? lane + 1 : lane;
  int right = __shfl_sync(staying, v, right_lane);
  out[i] = max(v, right);
}

int main() {
  const int n = 77;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i * 31 % 64;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  neighbour_maximum<<<2, 64>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", host[0], host[31], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
