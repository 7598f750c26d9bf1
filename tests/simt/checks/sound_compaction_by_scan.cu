// check: sound
// near: schedule
// what: kept elements find their places by counting the kept ones before them, so their order is the input's

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void keep_multiples(const int* in, int n, int* out, int* count) {
  for (int start = 0, before = 0; start < n; start += 32) {
    int i = start + threadIdx.x;
    bool keep = i < n && in[i] % 3 == 0;
    unsigned kept = __ballot_sync(0xffffffff, keep);
    if (keep) out[before + __popc(kept & ((1u << threadIdx.x) - 1))] = in[i];
    before += __popc(kept);
    if (threadIdx.x == 0) *count = before;
  }
}

int main() {
  const int n = 100;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i * 7 % 50;
  int count, *d_in, *d_out, *d_count;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, n * sizeof(int)));
  CHECK(cudaMalloc(&d_count, sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_count, 0, sizeof(int)));
  keep_multiples<<<1, 32>>>(d_in, n, d_out, d_count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(host.data(), d_out, count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; i++) printf("%d ", host[i]);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  CHECK(cudaFree(d_count));
  return 0;
}
