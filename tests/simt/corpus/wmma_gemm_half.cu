// title: matrix product on tensor cores with wmma: one warp per tile, shared-memory tiles, alpha and beta
// features: wmma, half_arithmetic, shared_memory, dynamic_shared_memory

#include <cuda_fp16.h>
#include <mma.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace nvcuda;

#define cudaErrCheck(stat) \
  { cudaErrCheck_((stat), __FILE__, __LINE__); }
void cudaErrCheck_(cudaError_t stat, const char *file, int line) {
  if (stat != cudaSuccess) {
    fprintf(stderr, "CUDA Error: %s %s %d\n", cudaGetErrorString(stat), file, line);
    exit(1);
  }
}

#define MATRIX_M 64
#define MATRIX_N 96
#define MATRIX_K 80

// The only dimensions used here for WMMA
const int WMMA_M = 16;
const int WMMA_N = 16;
const int WMMA_K = 16;

__global__ void convertFp32ToFp16(half *out, const float *in, int n) {
  int idx = blockDim.x * blockIdx.x + threadIdx.x;
  if (idx < n) out[idx] = __float2half(in[idx]);
}

// All matrices are column-major. A block has 4 x 2 warps.
__global__ void wmma_example(const half *a, const half *b, float *c, int M, int N, int K, float alpha, float beta) {
  int lda = M, ldb = K, ldc = M;
  int warpM = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
  int warpN = (blockIdx.y * blockDim.y + threadIdx.y);

  wmma::fragment<wmma::matrix_a, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major> a_frag;
  wmma::fragment<wmma::matrix_b, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major> b_frag;
  wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> acc_frag;
  wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> c_frag;
  wmma::fill_fragment(acc_frag, 0.0f);

  for (int i = 0; i < K; i += WMMA_K) {
    int aRow = warpM * WMMA_M, aCol = i, bRow = i, bCol = warpN * WMMA_N;
    if (aRow < M && aCol < K && bRow < K && bCol < N) {
      wmma::load_matrix_sync(a_frag, a + aRow + aCol * lda, lda);
      wmma::load_matrix_sync(b_frag, b + bRow + bCol * ldb, ldb);
      wmma::mma_sync(acc_frag, a_frag, b_frag, acc_frag);
    }
  }
  int cRow = warpM * WMMA_M, cCol = warpN * WMMA_N;
  if (cRow < M && cCol < N) {
    wmma::load_matrix_sync(c_frag, c + cRow + cCol * ldc, ldc, wmma::mem_col_major);
    for (int i = 0; i < c_frag.num_elements; i++) c_frag.x[i] = alpha * acc_frag.x[i] + beta * c_frag.x[i];
    wmma::store_matrix_sync(c + cRow + cCol * ldc, c_frag, ldc, wmma::mem_col_major);
  }
}

// Row-major A (with padding) and column-major B in shared memory; fp16 accumulators; tiles of 32 x 8.
__global__ void wmma_shared(const half *a, const half *b, half *d, int M, int K) {
  constexpr int PAD = 8;
  extern __shared__ half tiles[];
  half *as = tiles;                    // 32 x (16 + PAD)
  half *bs = tiles + 32 * (16 + PAD);  // 8 columns of 16 + PAD
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> acc;
  wmma::fill_fragment(acc, __float2half(0.0f));
  for (int k = 0; k < K; k += 16) {
    for (int i = threadIdx.x; i < 32 * 16; i += 32)
      as[i / 16 * (16 + PAD) + i % 16] = a[(blockIdx.y * 32 + i / 16) * K + k + i % 16];
    for (int i = threadIdx.x; i < 8 * 16; i += 32)
      bs[i / 16 * (16 + PAD) + i % 16] = b[(blockIdx.x * 8 + i / 16) * K + k + i % 16];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::col_major> fb;
    wmma::load_matrix_sync(fa, as, 16 + PAD);
    wmma::load_matrix_sync(fb, bs, 16 + PAD);
    wmma::mma_sync(acc, fa, fb, acc);
    __syncwarp();
  }
  wmma::store_matrix_sync(d + blockIdx.x * 8 * M + blockIdx.y * 32, acc, M, wmma::mem_col_major);
}

int main() {
  std::vector<float> a(MATRIX_M * MATRIX_K), b(MATRIX_K * MATRIX_N), c(MATRIX_M * MATRIX_N), got(c.size());
  for (size_t i = 0; i < a.size(); i++) a[i] = float(int(i * 7 % 13) - 6) / 4;
  for (size_t i = 0; i < b.size(); i++) b[i] = float(int(i * 5 % 9) - 4) / 2;
  for (size_t i = 0; i < c.size(); i++) c[i] = float(i % 21);
  float *d_a, *d_b, *d_c;
  half *d_a16, *d_b16, *d_d16;
  cudaErrCheck(cudaMalloc((void **)&d_a, a.size() * sizeof(float)));
  cudaErrCheck(cudaMalloc((void **)&d_b, b.size() * sizeof(float)));
  cudaErrCheck(cudaMalloc((void **)&d_c, c.size() * sizeof(float)));
  cudaErrCheck(cudaMalloc((void **)&d_a16, a.size() * sizeof(half)));
  cudaErrCheck(cudaMalloc((void **)&d_b16, b.size() * sizeof(half)));
  cudaErrCheck(cudaMalloc((void **)&d_d16, c.size() * sizeof(half)));
  cudaErrCheck(cudaMemcpy(d_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice));
  cudaErrCheck(cudaMemcpy(d_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice));
  cudaErrCheck(cudaMemcpy(d_c, c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice));
  convertFp32ToFp16<<<(a.size() + 255) / 256, 256>>>(d_a16, d_a, a.size());
  convertFp32ToFp16<<<(b.size() + 255) / 256, 256>>>(d_b16, d_b, b.size());

  const float alpha = 2.0f, beta = -1.0f;
  dim3 gridDim, blockDim;
  blockDim.x = 128;
  blockDim.y = 2;
  gridDim.x = (MATRIX_M + (WMMA_M * blockDim.x / 32 - 1)) / (WMMA_M * blockDim.x / 32);
  gridDim.y = (MATRIX_N + WMMA_N * blockDim.y - 1) / (WMMA_N * blockDim.y);
  wmma_example<<<gridDim, blockDim>>>(d_a16, d_b16, d_c, MATRIX_M, MATRIX_N, MATRIX_K, alpha, beta);
  cudaErrCheck(cudaGetLastError());
  cudaErrCheck(cudaMemcpy(got.data(), d_c, c.size() * sizeof(float), cudaMemcpyDeviceToHost));
  int errors = 0;
  double sum = 0;
  for (int i = 0; i < MATRIX_M; i++)
    for (int j = 0; j < MATRIX_N; j++) {
      double e = 0;
      for (int k = 0; k < MATRIX_K; k++) e += (double)a[i + k * MATRIX_M] * b[k + j * MATRIX_K];
      e = alpha * e + beta * c[i + j * MATRIX_M];
      double difference = got[i + j * MATRIX_M] - e;
      errors += !(difference < 1e-3 && difference > -1e-3);
      sum += got[i + j * MATRIX_M] * (i % 3 + 1);
    }
  printf("fp32 accumulators: %d errors, checksum %.2f\n", errors, sum);

  // The same memory, read as row-major A: entries are multiples of 1/8 and small, so fp16 sums are exact.
  wmma_shared<<<dim3(MATRIX_N / 8, MATRIX_M / 32), 32, (32 + 8) * 24 * sizeof(half)>>>(d_a16, d_b16, d_d16, MATRIX_M,
                                                                                      MATRIX_K);
  cudaErrCheck(cudaGetLastError());
  std::vector<half> d(c.size());
  cudaErrCheck(cudaMemcpy(d.data(), d_d16, d.size() * sizeof(half), cudaMemcpyDeviceToHost));
  int errors16 = 0;
  sum = 0;
  for (int i = 0; i < MATRIX_M; i++)
    for (int j = 0; j < MATRIX_N; j++) {
      double e = 0;
      for (int k = 0; k < MATRIX_K; k++) e += (double)a[i * MATRIX_K + k] * b[k + j * MATRIX_K];
      double difference = __half2float(d[i + j * MATRIX_M]) - e;
      errors16 += !(difference < 0.05 && difference > -0.05);
      sum += __half2float(d[i + j * MATRIX_M]) * (i % 3 + 1);
    }
  printf("fp16 accumulators: %d errors, checksum %.1f\n", errors16, sum);
  cudaErrCheck(cudaFree(d_a));
  cudaErrCheck(cudaFree(d_b));
  cudaErrCheck(cudaFree(d_c));
  cudaErrCheck(cudaFree(d_a16));
  cudaErrCheck(cudaFree(d_b16));
  cudaErrCheck(cudaFree(d_d16));
  puts(errors + errors16 ? "FAILED" : "PASSED");
  return errors + errors16 ? 1 : 0;
}
