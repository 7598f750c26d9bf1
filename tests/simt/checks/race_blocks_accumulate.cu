// check: race
// what: several blocks add their part to one output row by +=
// array: out

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void column_sums(const float* in, float* out, int rows, int columns) {
  int x = threadIdx.x, first = blockIdx.x * 8;
  if (x >= columns) return;
  float sum = 0;
  for (int y = first; y < min(first + 8, rows); y++) sum += in[y * columns + x];
  out[x] += sum;  // defect
}

int main() {
  const int rows = 30, columns = 50;
  std::vector<float> host(rows * columns), sums(columns);
  for (int i = 0; i < rows * columns; i++) host[i] = i % 11;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_out, columns * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, columns * sizeof(float)));
  column_sums<<<4, 64>>>(d_in, d_out, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_out, columns * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", sums[0], sums[columns - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
