// title: Speckle-reducing anisotropic diffusion: statistics by a reduction, then two kernels an iteration
// features: shared_memory, reductions, index_arrays
// args: 48 40 6

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 128
#define FP float

static void ok(const char *where) {
  cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess) {
    printf("%s: %s\n", where, cudaGetErrorString(e));
    exit(EXIT_FAILURE);
  }
}

__global__ void extract(FP *image, int n) {
  int i = blockIdx.x * THREADS + threadIdx.x;
  if (i < n) image[i] = expf(image[i] / 255);
}

/* sums of the values and of their squares, one pair a block */
__global__ void reduce(const FP *image, int n, double *sums, double *sums2) {
  __shared__ double s[THREADS], s2[THREADS];
  int tx = threadIdx.x;
  double a = 0, b = 0;
  for (int i = blockIdx.x * THREADS + tx; i < n; i += gridDim.x * THREADS) {
    a += image[i];
    b += (double)image[i] * image[i];
  }
  s[tx] = a;
  s2[tx] = b;
  __syncthreads();
  for (int d = THREADS / 2; d > 0; d >>= 1) {
    if (tx < d) {
      s[tx] += s[tx + d];
      s2[tx] += s2[tx + d];
    }
    __syncthreads();
  }
  if (tx == 0) {
    sums[blockIdx.x] = s[0];
    sums2[blockIdx.x] = s2[0];
  }
}

__global__ void srad(int Nr, int n, const int *iN, const int *iS, const int *jE, const int *jW, FP *dN, FP *dS, FP *dE, FP *dW, FP q0sqr,
                     FP *c, const FP *I) {
  int ei = blockIdx.x * THREADS + threadIdx.x;
  if (ei >= n) return;
  int row = ei % Nr, col = ei / Nr;
  FP Jc = I[ei];
  FP n_ = I[iN[row] + Nr * col] - Jc, s_ = I[iS[row] + Nr * col] - Jc, w_ = I[row + Nr * jW[col]] - Jc, e_ = I[row + Nr * jE[col]] - Jc;
  FP G2 = (n_ * n_ + s_ * s_ + w_ * w_ + e_ * e_) / (Jc * Jc), L = (n_ + s_ + w_ + e_) / Jc;
  FP num = 0.5f * G2 - (1.0f / 16.0f) * (L * L), den = 1 + 0.25f * L, qsqr = num / (den * den);
  den = (qsqr - q0sqr) / (q0sqr * (1 + q0sqr));
  FP v = 1.0f / (1.0f + den);
  dN[ei] = n_;
  dS[ei] = s_;
  dW[ei] = w_;
  dE[ei] = e_;
  c[ei] = v < 0 ? 0 : v > 1 ? 1 : v;
}

__global__ void srad2(FP lambda, int Nr, int n, const int *iS, const int *jE, const FP *dN, const FP *dS, const FP *dE, const FP *dW, const FP *c,
                      FP *I) {
  int ei = blockIdx.x * THREADS + threadIdx.x;
  if (ei >= n) return;
  int row = ei % Nr, col = ei / Nr;
  FP D = c[ei] * dN[ei] + c[iS[row] + Nr * col] * dS[ei] + c[ei] * dW[ei] + c[row + Nr * jE[col]] * dE[ei];
  I[ei] += 0.25f * lambda * D;
}

int main(int argc, char **argv) {
  const int Nr = argc > 1 ? atoi(argv[1]) : 48, Nc = argc > 2 ? atoi(argv[2]) : 40, iterations = argc > 3 ? atoi(argv[3]) : 6, n = Nr * Nc;
  const float lambda = 0.5f;
  int *idx = (int *)malloc((2 * Nr + 2 * Nc) * sizeof(int)), *iN = idx, *iS = idx + Nr, *jW = iS + Nr, *jE = jW + Nc, *d_idx, i, j, k;
  float *img = (float *)malloc(n * sizeof(float)), *got = (float *)malloc(n * sizeof(float)), *d_img, *d[5];
  double *sums, *sums2, h[2][8];
  for (i = 0; i < Nr; i++) iN[i] = i ? i - 1 : 0, iS[i] = i < Nr - 1 ? i + 1 : i;
  for (j = 0; j < Nc; j++) jW[j] = j ? j - 1 : 0, jE[j] = j < Nc - 1 ? j + 1 : j;
  for (k = 0; k < n; k++) img[k] = (k % Nr > 15 && k / Nr > 12 ? 140.0f : 60.0f) + (float)((k * 7919) % 41) - 20;
  cudaMalloc(&d_idx, (2 * Nr + 2 * Nc) * sizeof(int));
  cudaMalloc(&d_img, n * sizeof(float));
  for (k = 0; k < 5; k++) cudaMalloc(&d[k], n * sizeof(float));
  cudaMalloc(&sums, 8 * sizeof(double));
  cudaMalloc(&sums2, 8 * sizeof(double));
  ok("allocations");
  cudaMemcpy(d_idx, idx, (2 * Nr + 2 * Nc) * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_img, img, n * sizeof(float), cudaMemcpyHostToDevice);
  ok("copies");
  const int blocks = (n + THREADS - 1) / THREADS;
  const int *diN = d_idx, *diS = d_idx + Nr, *djW = diS + Nr, *djE = djW + Nc;
  extract<<<blocks, THREADS>>>(d_img, n);
  for (int t = 0; t < iterations; t++) {
    reduce<<<8, THREADS>>>(d_img, n, sums, sums2);
    ok("reduce");
    cudaMemcpy(h[0], sums, 8 * sizeof(double), cudaMemcpyDeviceToHost);
    cudaMemcpy(h[1], sums2, 8 * sizeof(double), cudaMemcpyDeviceToHost);
    double total = 0, total2 = 0;
    for (k = 0; k < 8; k++) total += h[0][k], total2 += h[1][k];
    double mean = total / n, var = total2 / n - mean * mean;
    srad<<<blocks, THREADS>>>(Nr, n, diN, diS, djE, djW, d[0], d[1], d[2], d[3], (float)(var / (mean * mean)), d[4], d_img);
    srad2<<<blocks, THREADS>>>(lambda, Nr, n, diS, djE, d[0], d[1], d[2], d[3], d[4], d_img);
    ok("srad");
  }
  cudaMemcpy(got, d_img, n * sizeof(float), cudaMemcpyDeviceToHost);
  cudaFree(d_idx);
  cudaFree(d_img);
  for (k = 0; k < 5; k++) cudaFree(d[k]);
  cudaFree(sums);
  cudaFree(sums2);
  ok("end");

  double *I = (double *)malloc(n * sizeof(double)), *c = (double *)malloc(n * sizeof(double)), *g = (double *)malloc(4 * n * sizeof(double));
  for (k = 0; k < n; k++) I[k] = exp(img[k] / 255.0);
  for (int t = 0; t < iterations; t++) {
    double sum = 0, sum2 = 0;
    for (k = 0; k < n; k++) sum += I[k], sum2 += I[k] * I[k];
    double mean = sum / n, q0 = (sum2 / n - mean * mean) / (mean * mean);
    for (k = 0; k < n; k++) {
      int row = k % Nr, col = k / Nr;
      g[4 * k] = I[iN[row] + Nr * col] - I[k], g[4 * k + 1] = I[iS[row] + Nr * col] - I[k];
      g[4 * k + 2] = I[row + Nr * jW[col]] - I[k], g[4 * k + 3] = I[row + Nr * jE[col]] - I[k];
      double G2 = 0, L = 0;
      for (int m = 0; m < 4; m++) G2 += g[4 * k + m] * g[4 * k + m] / (I[k] * I[k]), L += g[4 * k + m] / I[k];
      double q = (G2 / 2 - L * L / 16) / ((1 + L / 4) * (1 + L / 4));
      c[k] = fmin(1, fmax(0, 1 / (1 + (q - q0) / (q0 * (1 + q0)))));
    }
    for (k = 0; k < n; k++) {
      int row = k % Nr, col = k / Nr;
      I[k] += 0.25 * lambda * (c[k] * g[4 * k] + c[iS[row] + Nr * col] * g[4 * k + 1] + c[k] * g[4 * k + 2] + c[row + Nr * jE[col]] * g[4 * k + 3]);
    }
  }
  double worst = 0, mean = 0;
  for (k = 0; k < n; k++) worst = fmax(worst, fabs(I[k] - got[k])), mean += log(got[k]) * 255 / n;
  printf("%d x %d, %d iterations: mean grey value %.1f\n", Nr, Nc, iterations, mean);
  free(idx); free(img); free(got); free(I); free(c); free(g);
  puts(worst < 2e-3 ? "PASSED" : "FAILED");
  return worst < 2e-3 ? 0 : 1;
}
