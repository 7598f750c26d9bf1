// check: int_overflow
// what: the offset of an element in a 70000 x 70000 matrix is computed in 32 bits

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

// Looks elements of a virtual matrix up in a table of the first 4096 that repeats.
__global__ void lookup(const float* table, const int* rows, const int* columns, float* out, int n, int pitch) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int offset = rows[i] * pitch + columns[i];  // defect
  out[i] = table[offset & 4095];
}

int main() {
  const int n = 64, pitch = 70000;
  int rows[n], columns[n], *d_rows, *d_columns;
  float table[4096], out[n], *d_table, *d_out;
  for (int i = 0; i < n; i++) rows[i] = i * 1100, columns[i] = i;
  for (int i = 0; i < 4096; i++) table[i] = i;
  CHECK(cudaMalloc(&d_rows, sizeof(rows)));
  CHECK(cudaMalloc(&d_columns, sizeof(columns)));
  CHECK(cudaMalloc(&d_table, sizeof(table)));
  CHECK(cudaMalloc(&d_out, sizeof(out)));
  CHECK(cudaMemcpy(d_rows, rows, sizeof(rows), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_columns, columns, sizeof(columns), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_table, table, sizeof(table), cudaMemcpyHostToDevice));
  lookup<<<2, 32>>>(d_table, d_rows, d_columns, d_out, n, pitch);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", out[1], out[n - 1]);
  CHECK(cudaFree(d_rows));
  CHECK(cudaFree(d_columns));
  CHECK(cudaFree(d_table));
  CHECK(cudaFree(d_out));
  return 0;
}
