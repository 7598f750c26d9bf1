// check: sound
// near: misaligned
// what: rows of 32 floats: each begins at a multiple of 16 bytes

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void row_sum(const float* in, float* out, int rows, int columns) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* start = in + row * columns;
  float sum = 0;
  int x = 0;
  for (; x + 4 <= columns; x += 4) {
    float4 v = *(const float4*)(start + x);
    sum += v.x + v.y + v.z + v.w;
  }
  for (; x < columns; x++) sum += start[x];
  out[row] = sum;
}

int main() {
  const int rows = 40, columns = 32;
  std::vector<float> host(rows * columns, 1.0f), sums(rows);
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_out, rows * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice));
  row_sum<<<2, 32>>>(d_in, d_out, rows, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sums.data(), d_out, rows * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", sums[0], sums[rows - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
