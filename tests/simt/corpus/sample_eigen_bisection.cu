// title: Eigenvalues of a symmetric tridiagonal matrix by bisection with Sturm counts
// features: dynamic_shared_memory, double_precision, vector_types
// args: 96

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <float.h>
#include <cuda_runtime.h>

#define SAFE(x) \
  do { cudaError_t code = (x); if (code != cudaSuccess) { \
    fprintf(stderr, "%s (%d): %s\n", #x, __LINE__, cudaGetErrorString(code)); exit(-1); } } while (0)

/* how many eigenvalues are smaller than x: the signs of the pivots of the factorisation of T - x I */
__device__ int sturm(const double *d, const double *e, int n, double x) {
  double q = d[0] - x;
  int count = 0;
  for (int i = 0;; i++) {
    if (fabs(q) < 1e-300) q = -1e-300;
    count += q < 0;
    if (i == n - 1) break;
    q = d[i + 1] - x - e[i] * e[i] / q;
  }
  return count;
}

/* one thread an eigenvalue */
__global__ void bisect(const double *d, const double *e, int n, double lo0, double hi0, double tol, double *values) {
  extern __shared__ double s[];
  double *sd = s, *se = s + n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    sd[i] = d[i];
    se[i] = i + 1 < n ? e[i] : 0;
  }
  __syncthreads();
  int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= n) return;
  double lo = lo0, hi = hi0;
  while (hi - lo > tol) {
    double mid = 0.5 * (lo + hi);
    if (sturm(sd, se, n, mid) > k) hi = mid; else lo = mid;
  }
  values[k] = 0.5 * (lo + hi);
}

/* many equal intervals at once: the histogram of the spectrum */
__global__ void spectrum(const double *d, const double *e, int n, double lo, double width, int *counts, int cells) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c < cells) counts[c] = sturm(d, e, n, lo + (c + 1) * width) - sturm(d, e, n, lo + c * width);
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 96, i, cells = 20, bad = 0;
  double *d = (double *)malloc(n * sizeof(double)), *e = (double *)malloc(n * sizeof(double)), *v = (double *)malloc(n * sizeof(double));
  int *counts = (int *)malloc(cells * sizeof(int));
  double *dd, *de, *dv;
  int *dc;
  SAFE(cudaMalloc((void **)&dd, n * sizeof(double)));
  SAFE(cudaMalloc((void **)&de, n * sizeof(double)));
  SAFE(cudaMalloc((void **)&dv, n * sizeof(double)));
  SAFE(cudaMalloc((void **)&dc, cells * sizeof(int)));
  for (int test = 0; test < 2; test++) {
    for (i = 0; i < n; i++) {
      d[i] = test ? (i * 7 % 11) - 5.0 : 2.0;
      e[i] = test ? 0.5 + i % 3 : -1.0;
    }
    /* Gershgorin's discs */
    double lo = DBL_MAX, hi = -DBL_MAX;
    for (i = 0; i < n; i++) {
      double r = (i ? fabs(e[i - 1]) : 0) + (i + 1 < n ? fabs(e[i]) : 0);
      lo = fmin(lo, d[i] - r);
      hi = fmax(hi, d[i] + r);
    }
    lo -= 1e-3, hi += 1e-3;
    SAFE(cudaMemcpy(dd, d, n * sizeof(double), cudaMemcpyHostToDevice));
    SAFE(cudaMemcpy(de, e, n * sizeof(double), cudaMemcpyHostToDevice));
    bisect<<<(n + 31) / 32, 32, 2 * n * sizeof(double)>>>(dd, de, n, lo, hi, 1e-9, dv);
    SAFE(cudaGetLastError());
    spectrum<<<1, 32>>>(dd, de, n, lo, (hi - lo) / cells, dc, cells);
    SAFE(cudaGetLastError());
    SAFE(cudaMemcpy(v, dv, n * sizeof(double), cudaMemcpyDeviceToHost));
    SAFE(cudaMemcpy(counts, dc, cells * sizeof(int), cudaMemcpyDeviceToHost));
    double sum = 0, squares = 0, trace = 0, norm = 0;
    int total = 0;
    for (i = 0; i < n; i++) {
      sum += v[i];
      squares += v[i] * v[i];
      trace += d[i];
      norm += d[i] * d[i] + (i + 1 < n ? 2 * e[i] * e[i] : 0);
      if (i && v[i] < v[i - 1] - 1e-8) bad++;
      if (!test && fabs(v[i] - (2 - 2 * cos((i + 1) * M_PI / (n + 1)))) > 1e-7) bad++;
    }
    for (i = 0; i < cells; i++) total += counts[i];
    if (fabs(sum - trace) > 1e-6 || fabs(squares - norm) > 1e-5 * norm || total != n) bad++;
    printf("matrix %d: smallest %.3f, largest %.3f, sum %.2f\n", test, v[0], v[n - 1], sum + 1e-9);
  }
  SAFE(cudaFree(dd));
  SAFE(cudaFree(de));
  SAFE(cudaFree(dv));
  SAFE(cudaFree(dc));
  free(d);
  free(e);
  free(v);
  free(counts);
  puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
