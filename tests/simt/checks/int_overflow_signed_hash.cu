// check: int_overflow
// what: the bucket's number is hashed with signed arithmetic, whose overflow is undefined

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count_buckets(const int* keys, int n, int* buckets) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int h = keys[i];
  for (int round = 0; round < 3; round++) h = h * 31 + 1013904223;  // defect
  atomicAdd(&buckets[h & 15], 1);
}

int main() {
  const int n = 200;
  int keys[n], buckets[16], *d_keys, *d_buckets;
  for (int i = 0; i < n; i++) keys[i] = i * 12345;
  CHECK(cudaMalloc(&d_keys, sizeof(keys)));
  CHECK(cudaMalloc(&d_buckets, sizeof(buckets)));
  CHECK(cudaMemcpy(d_keys, keys, sizeof(keys), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_buckets, 0, sizeof(buckets)));
  count_buckets<<<4, 64>>>(d_keys, n, d_buckets);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(buckets, d_buckets, sizeof(buckets), cudaMemcpyDeviceToHost));
  for (int b : buckets) printf("%d ", b);
  printf("\n");
  CHECK(cudaFree(d_keys));
  CHECK(cudaFree(d_buckets));
  return 0;
}
