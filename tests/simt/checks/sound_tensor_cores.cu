// check: sound
// near: uninitialized
// what: a warp multiplies tiles with wmma fragments, loaded from shared memory and stored to global memory by the warp together

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <mma.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

using namespace nvcuda;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ __align__(32) __half as[256], bs[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) {
      as[i] = __float2half(a[(blockIdx.y * 16 + i / 16) * n + k0 + i % 16]);
      bs[i] = __float2half(b[(k0 + i / 16) * n + blockIdx.x * 16 + i % 16]);
    }
    __syncwarp();
    wmma::load_matrix_sync(fa, as, 16);
    wmma::load_matrix_sync(fb, bs, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncwarp();
  }
  wmma::store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, wmma::mem_row_major);
}

int main() {
  const int n = 32;
  const size_t bytes = n * n * sizeof(float);
  std::vector<float> a(n * n), b(n * n), c(n * n);
  for (int i = 0; i < n * n; i++) a[i] = i % 5, b[i] = i % 3;
  float *d_a, *d_b, *d_c;
  CHECK(cudaMalloc(&d_a, bytes));
  CHECK(cudaMalloc(&d_b, bytes));
  CHECK(cudaMalloc(&d_c, bytes));
  CHECK(cudaMemcpy(d_a, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, b.data(), bytes, cudaMemcpyHostToDevice));
  multiply<<<dim3(n / 16, n / 16), 32>>>(d_a, d_b, d_c, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(c.data(), d_c, bytes, cudaMemcpyDeviceToHost));
  printf("%g %g %g\n", c[0], c[17 * n + 5], c[n * n - 1]);
  for (float* p : {d_a, d_b, d_c}) CHECK(cudaFree(p));
  return 0;
}
