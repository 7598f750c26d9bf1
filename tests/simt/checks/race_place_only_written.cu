// check: race
// what: every thread that finds the key writes its place to a shared variable that nothing reads
// array: place

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void search(const int* values, int key, int* found) {
  __shared__ int place;
  int i = threadIdx.x;
  if (values[i] == key) {
    place = i;  // defect
    atomicAdd(found, 1);
  }
}

int main() {
  int host[96], *values, *found;
  for (int i = 0; i < 96; i++) host[i] = i % 40;
  CHECK(cudaMalloc(&values, sizeof host));
  CHECK(cudaMalloc(&found, sizeof(int)));
  CHECK(cudaMemset(found, 0, sizeof(int)));
  CHECK(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  search<<<1, 96>>>(values, 7, found);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, found, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host[0]);
  CHECK(cudaFree(values));
  CHECK(cudaFree(found));
}
