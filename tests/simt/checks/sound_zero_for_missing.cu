// check: sound
// near: warp_divergence
// what: threads past n take part in the shuffles, with a zero

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void dot(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? a[i] * b[i] : 0.0f;
  for (int offset = 16; offset > 0; offset >>= 1) {
    float other = __shfl_down_sync(0xffffffffu, v, offset);
    v += other;
  }
  if (threadIdx.x % 32 == 0) out[i / 32] = v;
}

int main() {
  const int n = 200, warps = 7;
  std::vector<float> a(n, 2.0f), b(n, 1.5f), out(warps);
  float *d_a, *d_b, *d_out;
  CHECK(cudaMalloc(&d_a, n * sizeof(float)));
  CHECK(cudaMalloc(&d_b, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, 8 * sizeof(float)));
  CHECK(cudaMemcpy(d_a, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  dot<<<2, 128>>>(d_a, d_b, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, warps * sizeof(float), cudaMemcpyDeviceToHost));
  for (float v : out) printf("%.0f ", v);
  printf("\n");
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_out));
  return 0;
}
