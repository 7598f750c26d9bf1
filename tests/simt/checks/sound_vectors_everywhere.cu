// check: sound
// near: misaligned
// what: 16-byte loads of eight halves, an aligned struct, and a float4 view of a shared array that is aligned for it

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cuda_fp16.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct alignas(16) Eight { __half2 pairs[4]; };

__global__ void sum_rows(const __half* in, float* out, int columns) {
  __shared__ __align__(16) float part[32];
  const Eight* row = reinterpret_cast<const Eight*>(in + blockIdx.x * columns);
  float sum = 0;
  for (int k = threadIdx.x; k < columns / 8; k += 32) {
    Eight eight = row[k];
    for (int p = 0; p < 4; p++) sum += __low2float(eight.pairs[p]) + __high2float(eight.pairs[p]);
  }
  part[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    float total = 0;
    for (int k = 0; k < 8; k++) {
      float4 v = reinterpret_cast<const float4*>(part)[k];
      total += v.x + v.y + v.z + v.w;
    }
    out[blockIdx.x] = total;
  }
}

int main() {
  const int rows = 3, columns = 80;
  std::vector<__half> host(rows * columns);
  for (int i = 0; i < rows * columns; i++) host[i] = __float2half(i % 10);
  float out[rows], *d_out;
  __half* d_in;
  CHECK(cudaMalloc(&d_in, host.size() * sizeof(__half)));
  CHECK(cudaMalloc(&d_out, sizeof(out)));
  CHECK(cudaMemcpy(d_in, host.data(), host.size() * sizeof(__half), cudaMemcpyHostToDevice));
  sum_rows<<<rows, 32>>>(d_in, d_out, columns);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  printf("%g %g %g\n", out[0], out[1], out[2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
