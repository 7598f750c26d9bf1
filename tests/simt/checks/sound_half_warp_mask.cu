// check: sound
// near: warp_divergence
// what: the lower half of the warp shuffles in a branch, with a mask of just those 16 lanes

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void scan_lower_half(const int* in, int* out) {
  int lane = threadIdx.x, v = in[lane];
  __shared__ int total;
  if (lane < 16) {
    for (int d = 1; d < 16; d *= 2) {
      int left = __shfl_up_sync(0x0000ffff, v, d);
      if (lane >= d) v += left;
    }
    if (lane == 15) total = v;
  }
  __syncthreads();
  out[lane] = lane < 16 ? v : v + total;
}

int main() {
  int host[32], *d_in, *d_out;
  for (int i = 0; i < 32; i++) host[i] = i + 1;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  scan_lower_half<<<1, 32>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", host[0], host[15], host[31]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
