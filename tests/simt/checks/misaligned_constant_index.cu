// check: misaligned
// what: one thread reads two floats at once from element 1 of a shared array, an index that the compiler knows
// array: tile

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add_inner_pair(const float* in, float* out) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  if (i == 0) {
    float2 pair = *reinterpret_cast<float2*>(&tile[1]);  // defect
    out[0] = pair.x + pair.y;
  }
}

int main() {
  const int n = 64;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 7;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, n * sizeof(float)));
  add_inner_pair<<<1, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
