// title: Jacobi stencils in one and two dimensions and an alternating-direction sweep
// features: pointer_swap, double_precision, device_functions
// args: 64 8

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define gpu_check(x) \
  { cudaError_t s = (x); if (s != cudaSuccess) { fprintf(stderr, "GPU error %d (%s), line %d\n", s, cudaGetErrorString(s), __LINE__); exit(s); } }

__global__ void jacobi1d(int n, const double *a, double *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) b[i] = 0.33333 * (a[i - 1] + a[i] + a[i + 1]);
}

__global__ void jacobi2d(int n, const double *a, double *b) {
  int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1 && j > 0 && j < n - 1)
    b[i * n + j] = 0.2 * (a[i * n + j] + a[i * n + j - 1] + a[i * n + j + 1] + a[(i + 1) * n + j] + a[(i - 1) * n + j]);
}

/* A tridiagonal system (1 + 2 l, -l) per line, by Thomas's algorithm; stride 1 solves rows, stride n columns. */
__device__ void thomas(double *x, double *c, int n, int stride, double l) {
  c[0] = -l / (1 + 2 * l);
  x[0] /= 1 + 2 * l;
  for (int i = 1; i < n; i++) {
    double m = 1 / (1 + 2 * l + l * c[(i - 1) * stride]);
    c[i * stride] = -l * m;
    x[i * stride] = (x[i * stride] + l * x[(i - 1) * stride]) * m;
  }
  for (int i = n - 2; i >= 0; i--) x[i * stride] -= c[i * stride] * x[(i + 1) * stride];
}

__global__ void adi_rows(int n, double *x, double *c, double l) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) thomas(x + i * n, c + i * n, n, 1, l);
}

__global__ void adi_columns(int n, double *x, double *c, double l) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  if (j < n) thomas(x + j, c + j, n, n, l);
}

static double differs(const double *a, const double *b, int n) {
  double worst = 0;
  for (int i = 0; i < n; i++) worst = fmax(worst, fabs(a[i] - b[i]));
  return worst;
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 64, steps = argc > 2 ? atoi(argv[2]) : 8, size = n * n;
  const double l = 0.7;
  double *a = (double *)malloc(size * sizeof(double)), *u = (double *)malloc(size * sizeof(double)), *v = (double *)malloc(size * sizeof(double));
  double *got = (double *)malloc(size * sizeof(double)), *d_a, *d_b, *t, worst = 0;
  int i, j, k;
  for (i = 0; i < size; i++) a[i] = (double)(i * (i % 7 + 2) % 101) / 100;
  gpu_check(cudaMalloc((void **)&d_a, size * sizeof(double)));
  gpu_check(cudaMalloc((void **)&d_b, size * sizeof(double)));

  gpu_check(cudaMemcpy(d_a, a, size * sizeof(double), cudaMemcpyHostToDevice));
  gpu_check(cudaMemcpy(d_b, a, size * sizeof(double), cudaMemcpyHostToDevice));
  memcpy(u, a, size * sizeof(double));
  memcpy(v, a, size * sizeof(double));
  for (k = 0; k < steps; k++) {
    jacobi1d<<<(size + 255) / 256, 256>>>(size, d_a, d_b);
    t = d_a, d_a = d_b, d_b = t;
    for (i = 1; i < size - 1; i++) v[i] = 0.33333 * (u[i - 1] + u[i] + u[i + 1]);
    t = u, u = v, v = t;
  }
  gpu_check(cudaGetLastError());
  gpu_check(cudaMemcpy(got, d_a, size * sizeof(double), cudaMemcpyDeviceToHost));
  worst = fmax(worst, differs(u, got, size));
  printf("jacobi 1-D: middle %.5f\n", got[size / 2]);

  gpu_check(cudaMemcpy(d_a, a, size * sizeof(double), cudaMemcpyHostToDevice));
  gpu_check(cudaMemcpy(d_b, a, size * sizeof(double), cudaMemcpyHostToDevice));
  memcpy(u, a, size * sizeof(double));
  memcpy(v, a, size * sizeof(double));
  dim3 block(16, 16), grid((n + 15) / 16, (n + 15) / 16);
  for (k = 0; k < steps; k++) {
    jacobi2d<<<grid, block>>>(n, d_a, d_b);
    t = d_a, d_a = d_b, d_b = t;
    for (i = 1; i < n - 1; i++)
      for (j = 1; j < n - 1; j++) v[i * n + j] = 0.2 * (u[i * n + j] + u[i * n + j - 1] + u[i * n + j + 1] + u[(i + 1) * n + j] + u[(i - 1) * n + j]);
    t = u, u = v, v = t;
  }
  gpu_check(cudaGetLastError());
  gpu_check(cudaMemcpy(got, d_a, size * sizeof(double), cudaMemcpyDeviceToHost));
  worst = fmax(worst, differs(u, got, size));
  printf("jacobi 2-D: middle %.5f\n", got[n / 2 * n + n / 2]);

  gpu_check(cudaMemcpy(d_a, a, size * sizeof(double), cudaMemcpyHostToDevice));
  adi_rows<<<(n + 31) / 32, 32>>>(n, d_a, d_b, l);
  adi_columns<<<(n + 31) / 32, 32>>>(n, d_a, d_b, l);
  gpu_check(cudaGetLastError());
  gpu_check(cudaMemcpy(got, d_a, size * sizeof(double), cudaMemcpyDeviceToHost));
  /* back: both operators applied to the solution give the right-hand side */
  for (i = 0; i < n; i++)
    for (j = 0; j < n; j++)
      u[i * n + j] = (1 + 2 * l) * got[i * n + j] - l * ((i ? got[(i - 1) * n + j] : 0) + (i < n - 1 ? got[(i + 1) * n + j] : 0));
  for (i = 0; i < n; i++)
    for (j = 0; j < n; j++) v[i * n + j] = (1 + 2 * l) * u[i * n + j] - l * ((j ? u[i * n + j - 1] : 0) + (j < n - 1 ? u[i * n + j + 1] : 0));
  worst = fmax(worst, differs(v, a, size));
  printf("alternating directions: middle %.5f\n", got[n / 2 * n + n / 2]);
  gpu_check(cudaFree(d_a));
  gpu_check(cudaFree(d_b));
  free(a);
  free(u);
  free(v);
  free(got);
  puts(worst < 1e-12 ? "PASSED" : "FAILED");
  return worst < 1e-12 ? 0 : 1;
}
