// title: Symmetric rank-k and rank-2k updates, and a tensor contraction over the last index
// features: shared_memory, three_dimensional_grids, const_references
// args: 40 30

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define TILE 8

static void stop(cudaError_t e, const std::string& what) {
  if (e == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(e));
  exit(1);
}

// C = alpha (A B^T + B A^T) / 2 + beta C in the lower triangle: with A = B the rank-k update
__global__ void syr2k(int n, int m, float alpha, float beta, const float* A, const float* B, float* C) {
  __shared__ float ai[TILE][TILE + 1], bi[TILE][TILE + 1], aj[TILE][TILE + 1], bj[TILE][TILE + 1];
  if (blockIdx.x > blockIdx.y) return;  // above the diagonal: the whole block leaves
  const int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x, jr = blockIdx.x * TILE + threadIdx.y;
  float sum = 0;
  for (int k0 = 0; k0 < m; k0 += TILE) {
    int k = k0 + threadIdx.x;
    ai[threadIdx.y][threadIdx.x] = i < n && k < m ? A[i * m + k] : 0;
    bi[threadIdx.y][threadIdx.x] = i < n && k < m ? B[i * m + k] : 0;
    aj[threadIdx.y][threadIdx.x] = jr < n && k < m ? A[jr * m + k] : 0;
    bj[threadIdx.y][threadIdx.x] = jr < n && k < m ? B[jr * m + k] : 0;
    __syncthreads();
    for (int t = 0; t < TILE; t++) sum += ai[threadIdx.y][t] * bj[threadIdx.x][t] + bi[threadIdx.y][t] * aj[threadIdx.x][t];
    __syncthreads();
  }
  if (i < n && j <= i) C[i * n + j] = beta * C[i * n + j] + 0.5f * alpha * sum;
}

// out[r][q][p] = sum over s of in[r][q][s] c[s][p]
__global__ void doitgen(int nr, int nq, int np, const float* in, const float* c, float* out) {
  int p = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y * blockDim.y + threadIdx.y, r = blockIdx.z;
  if (p >= np || q >= nq || r >= nr) return;
  float sum = 0;
  for (int s = 0; s < np; s++) sum += in[(r * nq + q) * np + s] * c[s * np + p];
  out[(r * nq + q) * np + p] = sum;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 40, m = argc > 2 ? atoi(argv[2]) : 30, nr = 5, nq = 6, np = 28;
  std::vector<float> A(n * m), B(n * m), C(n * n), got(n * n), in(nr * nq * np), c4(np * np), out(nr * nq * np);
  for (int i = 0; i < n * m; i++) A[i] = (i * 7 % 32) / 32.0f, B[i] = (i * 11 % 16) / 16.0f - 0.5f;
  for (int i = 0; i < n * n; i++) C[i] = (i * 5 % 64) / 64.0f;
  for (size_t i = 0; i < in.size(); i++) in[i] = (i * 3 % 16) / 8.0f;
  for (int i = 0; i < np * np; i++) c4[i] = (i * 13 % 32) / 16.0f - 1;
  float *dA, *dB, *dC, *dIn, *dOut, *dC4;
  stop(cudaMalloc(&dA, A.size() * 4), "A");
  stop(cudaMalloc(&dB, B.size() * 4), "B");
  stop(cudaMalloc(&dC, C.size() * 4), "C");
  stop(cudaMalloc(&dIn, in.size() * 4), "in");
  stop(cudaMalloc(&dOut, out.size() * 4), "out");
  stop(cudaMalloc(&dC4, c4.size() * 4), "C4");
  stop(cudaMemcpy(dA, A.data(), A.size() * 4, cudaMemcpyHostToDevice), "copy A");
  stop(cudaMemcpy(dB, B.data(), B.size() * 4, cudaMemcpyHostToDevice), "copy B");
  stop(cudaMemcpy(dIn, in.data(), in.size() * 4, cudaMemcpyHostToDevice), "copy in");
  stop(cudaMemcpy(dC4, c4.data(), c4.size() * 4, cudaMemcpyHostToDevice), "copy C4");
  const float alpha = 1.5f, beta = 0.5f;
  bool ok = true;
  for (int rank = 1; rank <= 2; rank++) {
    const std::vector<float>& other = rank == 1 ? A : B;
    stop(cudaMemcpy(dC, C.data(), C.size() * 4, cudaMemcpyHostToDevice), "copy C");
    syr2k<<<dim3((n + TILE - 1) / TILE, (n + TILE - 1) / TILE), dim3(TILE, TILE)>>>(n, m, alpha, beta, dA, rank == 1 ? dA : dB, dC);
    stop(cudaGetLastError(), "syr2k");
    stop(cudaMemcpy(got.data(), dC, C.size() * 4, cudaMemcpyDeviceToHost), "copy back");
    double worst = 0, sum = 0;
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        double want = C[i * n + j];
        if (j <= i) {
          want *= beta;
          for (int k = 0; k < m; k++) want += alpha / 2 * ((double)A[i * m + k] * other[j * m + k] + (double)other[i * m + k] * A[j * m + k]);
        }
        worst = fmax(worst, fabs(want - got[i * n + j]));
        sum += got[i * n + j];
      }
    printf("rank-%s update: sum %.1f\n", rank == 1 ? "k" : "2k", sum);
    ok = ok && worst < 1e-3;
  }
  doitgen<<<dim3((np + 31) / 32, (nq + 3) / 4, nr), dim3(32, 4)>>>(nr, nq, np, dIn, dC4, dOut);
  stop(cudaGetLastError(), "doitgen");
  stop(cudaMemcpy(out.data(), dOut, out.size() * 4, cudaMemcpyDeviceToHost), "copy back");
  double sum = 0;
  for (int rq = 0; rq < nr * nq; rq++)
    for (int p = 0; p < np; p++) {
      double want = 0;
      for (int s = 0; s < np; s++) want += (double)in[rq * np + s] * c4[s * np + p];
      ok = ok && want == out[rq * np + p];  // few bits: exact
      sum += out[rq * np + p];
    }
  printf("contraction: sum %.3f\n", sum);
  for (float* p : {dA, dB, dC, dIn, dOut, dC4}) stop(cudaFree(p), "free");
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
