// check: uninitialized
// what: the odd records of an array are never filled, and a second kernel copies all of them
// array: records

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Record { int key; float values[7]; };

__global__ void fill(Record* records, int n) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  Record r;
  r.key = i;
  for (int k = 0; k < 7; k++) r.values[k] = k;
  records[i] = r;
}

__global__ void copy(const Record* __restrict__ records, Record* __restrict__ to, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = records[i];  // defect
}

int main() {
  const int n = 100;
  Record *records, *to;
  CHECK(cudaMalloc(&records, n * sizeof(Record)));
  CHECK(cudaMalloc(&to, n * sizeof(Record)));
  fill<<<1, 64>>>(records, n);
  copy<<<2, 64>>>(records, to, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(records));
  CHECK(cudaFree(to));
}
