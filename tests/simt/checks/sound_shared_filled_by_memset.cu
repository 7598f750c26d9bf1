// check: sound
// near: out_of_bounds
// what: helper functions clear and copy whole shared arrays and rows of them with memset and memcpy

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int ROWS = 8, COLUMNS = 20;

template <class T, int N>
__device__ void clear(T (&array)[N]) {
  if (threadIdx.x == 0 && threadIdx.y == 0) memset(array, 0, sizeof(array));
  __syncthreads();
}

__device__ void copy_row(float* to, const float* from, int n) { memcpy(to, from, n * sizeof(float)); }

__global__ void shift_rows(const float* in, float* out) {
  __shared__ float rows[ROWS][COLUMNS], sums[ROWS];
  clear(rows);
  clear(sums);
  int y = threadIdx.y;
  if (threadIdx.x == 0) copy_row(rows[y], in + y * COLUMNS, COLUMNS);
  __syncthreads();
  atomicAdd(&sums[(y + 1) % ROWS], rows[y][threadIdx.x]);
  __syncthreads();
  out[y * COLUMNS + threadIdx.x] = rows[ROWS - 1 - y][COLUMNS - 1 - threadIdx.x] + sums[y];
}

int main() {
  float host[ROWS * COLUMNS], *in, *out;
  for (int i = 0; i < ROWS * COLUMNS; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  shift_rows<<<1, dim3(COLUMNS, ROWS)>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%.0f\n", host[0]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
