// check: sound
// near: barrier_divergence
// what: half of the threads return at once, in every warp; no barrier and no shuffle follows

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void upsample_rows(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % 2) return;
  if (i >= n) return;
  float left = in[i / 2], right = i / 2 + 1 < n / 2 ? in[i / 2 + 1] : left;
  out[i] = left;
  out[i + 1] = (left + right) / 2;
}

int main() {
  const int n = 180;
  std::vector<float> in(n / 2), out(n);
  for (int i = 0; i < n / 2; i++) in[i] = 4 * i;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n / 2 * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, in.data(), n / 2 * sizeof(float), cudaMemcpyHostToDevice));
  upsample_rows<<<3, 64>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%g %g\n", out[3], out[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
