// check: warp_divergence
// what: in the last round only some lanes are still in the loop, and the shuffles read from those that left it

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void strip_sums(const int* in, int* out, int n) {
  int lane = threadIdx.x;
  for (int i = lane; i < n; i += 32) {
    int v = in[i];
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffff, v, d);  // defect
    if (lane == 0) out[i / 32] = v;
  }
  __syncwarp();  // other
  if (lane == 1) out[(n + 31) / 32] = n;
}

int main() {
  const int n = 80, strips = (n + 31) / 32;
  std::vector<int> host(n), sums(strips + 1);
  for (int i = 0; i < n; i++) host[i] = i;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, (strips + 1) * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  strip_sums<<<1, 32>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_out, (strips + 1) * sizeof(int), cudaMemcpyDeviceToHost));
  for (int s : sums) printf("%d ", s);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
