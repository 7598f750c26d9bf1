// check: misaligned
// what: points follow a header of one float, so each float2 lies 4 bytes off a multiple of 8
// array: packed

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void lengths(const float* packed, float* out) {
  int count = (int)packed[0], i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const float2* points = reinterpret_cast<const float2*>(packed + 1);
  float2 p = points[i];  // defect
  out[i] = sqrtf(p.x * p.x + p.y * p.y);
}

int main() {
  const int n = 50;
  float packed[2 + 2 * n] = {n, 0}, out[n], *d_packed, *d_out;
  for (int i = 0; i < n; i++) packed[2 + 2 * i] = 3 * i, packed[3 + 2 * i] = 4 * i;
  CHECK(cudaMalloc(&d_packed, sizeof(packed)));
  CHECK(cudaMalloc(&d_out, sizeof(out)));
  CHECK(cudaMemcpy(d_packed, packed, sizeof(packed), cudaMemcpyHostToDevice));
  lengths<<<2, 32>>>(d_packed, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", out[1], out[n - 1]);
  CHECK(cudaFree(d_packed));
  CHECK(cudaFree(d_out));
  return 0;
}
