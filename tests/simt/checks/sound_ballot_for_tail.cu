// check: sound
// near: warp_divergence
// what: before each round all lanes agree by a ballot who has an element; those reduce with that mask, with lanes of it only

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void strip_sums(const int* in, int* out, int n) {
  int lane = threadIdx.x;
  for (int start = 0; start < n; start += 32) {
    int i = start + lane;
    unsigned mask = __ballot_sync(0xffffffff, i < n);
    if (i < n) {
      int v = __reduce_add_sync(mask, in[i]);
      if (lane == 0) out[i / 32] = v;
    }
  }
  __syncwarp();
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
