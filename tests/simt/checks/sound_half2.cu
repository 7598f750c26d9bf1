// check: sound
// near: misaligned
// what: rows of 33 halves, padded to 34 in memory, so that a half2 never straddles two words

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cuda_fp16.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add_pairs(const __half* in, float* out, int rows, int pairs, int stride) {
  int row = blockIdx.y, k = threadIdx.x;
  if (row >= rows || k >= pairs) return;
  __half2 two = *reinterpret_cast<const __half2*>(in + row * stride + 2 * k);
  out[row * pairs + k] = __low2float(two) + __high2float(two);
}

int main() {
  const int rows = 4, pairs = 16;
  const int stride = 34;
  std::vector<__half> host(rows * stride);
  std::vector<float> out(rows * pairs);
  for (int i = 0; i < rows * stride; i++) host[i] = __float2half(i % stride);
  __half* d_in;
  float* d_out;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(__half)));
  CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(__half), cudaMemcpyHostToDevice));
  add_pairs<<<dim3(1, rows), 32>>>(d_in, d_out, rows, pairs, stride);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", out[1], out[pairs + 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
