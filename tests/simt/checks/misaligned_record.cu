// check: misaligned
// what: records of a tag byte and an int without padding: the int is read where it lies, at odd addresses
// array: records

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void sum_tagged(const unsigned char* records, int n, int wanted, int* sum) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned char* record = records + 5 * i;
  if (record[0] != wanted) return;
  int value = *(const int*)(record + 1);  // defect
  atomicAdd(sum, value);
}

int main() {
  const int n = 100;
  std::vector<unsigned char> records(5 * n);
  for (int i = 0; i < n; i++) {
    records[5 * i] = i % 3;
    std::memcpy(&records[5 * i + 1], &i, 4);
  }
  unsigned char* d_records;
  int sum, *d_sum;
  CHECK(cudaMalloc(&d_records, records.size()));
  CHECK(cudaMalloc(&d_sum, sizeof(int)));
  CHECK(cudaMemcpy(d_records, records.data(), records.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_sum, 0, sizeof(int)));
  sum_tagged<<<4, 32>>>(d_records, n, 1, d_sum);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&sum, d_sum, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", sum);
  CHECK(cudaFree(d_records));
  CHECK(cudaFree(d_sum));
  return 0;
}
