// check: race
// what: a warp transposes its rows through shared memory without __syncwarp() between storing and reading
// array: tile

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void transpose_rows(const float* in, float* out, int tiles) {
  __shared__ float tile[2][4][8];  // for each warp, 4 rows of 8
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int k = blockIdx.x * 2 + warp; k < tiles; k += gridDim.x * 2) {
    tile[warp][lane / 8][lane % 8] = in[32 * k + lane];  // other
    out[32 * k + lane] = tile[warp][lane % 4][lane / 4];  // defect
  }
}

int main() {
  const int tiles = 7, n = 32 * tiles;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  transpose_rows<<<2, 64>>>(d_in, d_out, tiles);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[1], host[4], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
