// check: out_of_bounds
// what: a row index is multiplied with the row's length twice, so that writes land up to 200 KiB behind the shared array
// array: tile

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <int ROWS, int COLUMNS>
__global__ void transpose(const float* in, float* out) {
  __shared__ float tile[ROWS * COLUMNS];
  float* const row = tile + threadIdx.y * COLUMNS * COLUMNS;
  row[threadIdx.x] = in[threadIdx.y * COLUMNS + threadIdx.x];  // defect
  __syncthreads();
  out[threadIdx.x * ROWS + threadIdx.y] = tile[threadIdx.y * COLUMNS + threadIdx.x];
}

int main() {
  const int rows = 16, columns = 56;
  float host[rows * columns] = {}, *in, *out;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  transpose<rows, columns><<<1, dim3(columns, rows)>>>(in, out);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(in);
  cudaFree(out);
}
