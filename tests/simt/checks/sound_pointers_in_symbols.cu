// check: sound
// near: illegal_address
// what: pointers in constant and device variables lead to device memory, and a table of rows is complete

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__constant__ const int* table;
__device__ int* results;
__device__ int total[4];

__global__ void look_up(int* const* rows, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  results[i] = table[n - 1 - i];
  rows[blockIdx.x][i] = results[i] + (results ? 1 : 0);
  if (i == 0) total[blockIdx.x] = table[blockIdx.x];
}

int main() {
  const int n = 20;
  int host[n], *device_table, *device_results, *row, *rows_host[1], **rows, *symbol;
  for (int i = 0; i < n; i++) host[i] = i * i;
  CHECK(cudaMalloc(&device_table, sizeof host));
  CHECK(cudaMalloc(&device_results, sizeof host));
  CHECK(cudaMalloc(&row, sizeof host));
  CHECK(cudaMalloc(&rows, sizeof rows_host));
  rows_host[0] = row;
  CHECK(cudaMemcpy(device_table, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(rows, rows_host, sizeof rows_host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpyToSymbol(table, &device_table, sizeof device_table));
  CHECK(cudaMemcpyToSymbol(results, &device_results, sizeof device_results));
  look_up<<<1, 32>>>(rows, n);
  CHECK(cudaGetLastError());
  CHECK(cudaGetSymbolAddress((void**)&symbol, total));
  CHECK(cudaMemcpy(host, symbol, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(host + 1, row + 3, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(device_table));
  CHECK(cudaFree(device_results));
  CHECK(cudaFree(row));
  CHECK(cudaFree(rows));
}
