// title: Chains of matrix products: D = alpha A B C + beta D, and (A B)(C D)
// features: two_dimensional_blocks, double_precision, macros
// args: 48

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_TYPE double
#define DIM_THREAD_BLOCK_X 16
#define DIM_THREAD_BLOCK_Y 8
#define GRID(n) dim3(((n) + DIM_THREAD_BLOCK_X - 1) / DIM_THREAD_BLOCK_X, ((n) + DIM_THREAD_BLOCK_Y - 1) / DIM_THREAD_BLOCK_Y)

#define CUDA(call) \
  do { cudaError_t err = (call); if (err != cudaSuccess) { fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(err)); exit(1); } } while (0)

/* c = alpha a b + beta c; beta = 0 does not read c */
__global__ void mm_kernel(int ni, int nj, int nk, DATA_TYPE alpha, DATA_TYPE beta, const DATA_TYPE *a, const DATA_TYPE *b, DATA_TYPE *c) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y * blockDim.y + threadIdx.y;
  if (i < ni && j < nj) {
    DATA_TYPE sum = beta == 0 ? 0 : beta * c[i * nj + j];
    for (int k = 0; k < nk; k++) sum += alpha * a[i * nk + k] * b[k * nj + j];
    c[i * nj + j] = sum;
  }
}

static void init_array(int n, DATA_TYPE *A, DATA_TYPE *B, DATA_TYPE *C, DATA_TYPE *D) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      A[i * n + j] = (DATA_TYPE)((i * j + 1) % n) / n;
      B[i * n + j] = (DATA_TYPE)(i * (j + 1) % n) / n;
      C[i * n + j] = (DATA_TYPE)((i * (j + 3) + 1) % n) / n;
      D[i * n + j] = (DATA_TYPE)(i * (j + 2) % n) / n;
    }
}

static void multiply(int n, const DATA_TYPE *a, const DATA_TYPE *b, DATA_TYPE *c) {
  memset(c, 0, n * n * sizeof(DATA_TYPE));
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++)
      for (int j = 0; j < n; j++) c[i * n + j] += a[i * n + k] * b[k * n + j];
}

static int compare(const char *name, int n, const DATA_TYPE *want, const DATA_TYPE *got) {
  int fail = 0;
  double trace = 0;
  for (int i = 0; i < n * n; i++)
    if (fabs(want[i] - got[i]) > 1e-9 * (1 + fabs(want[i]))) fail++;
  for (int i = 0; i < n; i++) trace += got[i * n + i];
  printf("%s: trace %.4f, %d elements differ\n", name, trace, fail);
  return fail;
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 48;
  const size_t bytes = n * n * sizeof(DATA_TYPE);
  const DATA_TYPE alpha = 1.5, beta = 1.2;
  DATA_TYPE *h[7], *d[7];
  for (int i = 0; i < 7; i++) {
    h[i] = (DATA_TYPE *)malloc(bytes);
    CUDA(cudaMalloc((void **)&d[i], bytes));
  }
  init_array(n, h[0], h[1], h[2], h[3]);
  for (int i = 0; i < 4; i++) CUDA(cudaMemcpy(d[i], h[i], bytes, cudaMemcpyHostToDevice));
  dim3 block(DIM_THREAD_BLOCK_X, DIM_THREAD_BLOCK_Y);
  /* 3mm first, as 2mm overwrites D */
  mm_kernel<<<GRID(n), block>>>(n, n, n, 1, 0, d[0], d[1], d[4]);
  mm_kernel<<<GRID(n), block>>>(n, n, n, 1, 0, d[2], d[3], d[5]);
  mm_kernel<<<GRID(n), block>>>(n, n, n, 1, 0, d[4], d[5], d[6]);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(h[6], d[6], bytes, cudaMemcpyDeviceToHost));
  DATA_TYPE *e = (DATA_TYPE *)malloc(bytes), *f = (DATA_TYPE *)malloc(bytes), *g = (DATA_TYPE *)malloc(bytes);
  multiply(n, h[0], h[1], e);
  multiply(n, h[2], h[3], f);
  multiply(n, e, f, g);
  int fail = compare("3mm", n, g, h[6]);

  mm_kernel<<<GRID(n), block>>>(n, n, n, alpha, 0, d[0], d[1], d[4]);
  mm_kernel<<<GRID(n), block>>>(n, n, n, 1, beta, d[4], d[2], d[3]);
  CUDA(cudaGetLastError());
  CUDA(cudaMemcpy(h[6], d[3], bytes, cudaMemcpyDeviceToHost));
  multiply(n, e, h[2], g);
  for (int i = 0; i < n * n; i++) g[i] = alpha * g[i] + beta * h[3][i];
  fail += compare("2mm", n, g, h[6]);
  for (int i = 0; i < 7; i++) {
    free(h[i]);
    CUDA(cudaFree(d[i]));
  }
  free(e);
  free(f);
  free(g);
  puts(fail ? "FAILED" : "PASSED");
  return fail ? 1 : 0;
}
