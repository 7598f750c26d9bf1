// title: Many muscle-like cells: stiff ODEs by embedded Runge-Kutta with step control per thread
// features: double_precision, local_arrays, device_functions, divergence
// args: 100

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EQ 4
#define CUDA_SAFE(x) do { cudaError_t e = (x); if (e) { printf("CUDA error %d at %d\n", e, __LINE__); exit(EXIT_FAILURE); } } while (0)

/* a FitzHugh-Nagumo membrane, calcium and a slow gate */
__host__ __device__ static void master(const double *y, const double *p, double *f) {
  f[0] = y[0] - y[0] * y[0] * y[0] / 3 - y[1] + p[0];
  f[1] = 0.08 * (y[0] + 0.7 - 0.8 * y[1]);
  f[2] = p[1] * (1 + tanh(2 * y[0])) - 0.5 * y[2];
  f[3] = y[2] * (1 - y[3]) - 0.2 * y[3];
}

/* Fehlberg's coefficients of order 4 and 5 */
__host__ __device__ static double step45(const double *y, const double *p, double h, double *out) {
  double k[6][EQ], t[EQ], error = 0;
  master(y, p, k[0]);
  for (int i = 0; i < EQ; i++) t[i] = y[i] + h * k[0][i] / 4;
  master(t, p, k[1]);
  for (int i = 0; i < EQ; i++) t[i] = y[i] + h * (3.0 / 32 * k[0][i] + 9.0 / 32 * k[1][i]);
  master(t, p, k[2]);
  for (int i = 0; i < EQ; i++) t[i] = y[i] + h * (1932.0 / 2197 * k[0][i] - 7200.0 / 2197 * k[1][i] + 7296.0 / 2197 * k[2][i]);
  master(t, p, k[3]);
  for (int i = 0; i < EQ; i++) t[i] = y[i] + h * (439.0 / 216 * k[0][i] - 8 * k[1][i] + 3680.0 / 513 * k[2][i] - 845.0 / 4104 * k[3][i]);
  master(t, p, k[4]);
  for (int i = 0; i < EQ; i++)
    t[i] = y[i] + h * (-8.0 / 27 * k[0][i] + 2 * k[1][i] - 3544.0 / 2565 * k[2][i] + 1859.0 / 4104 * k[3][i] - 11.0 / 40 * k[4][i]);
  master(t, p, k[5]);
  for (int i = 0; i < EQ; i++) {
    out[i] = y[i] + h * (16.0 / 135 * k[0][i] + 6656.0 / 12825 * k[2][i] + 28561.0 / 56430 * k[3][i] - 9.0 / 50 * k[4][i] + 2.0 / 55 * k[5][i]);
    double e = h * fabs(k[0][i] / 360 - 128.0 / 4275 * k[2][i] - 2197.0 / 75240 * k[3][i] + k[4][i] / 50 + 2.0 / 55 * k[5][i]);
    if (e > error) error = e;
  }
  return error;
}

__global__ void solver(double *state, const double *params, int *steps, int cells, double end, double tolerance) {
  int cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= cells) return;
  double y[EQ], next[EQ], p[2] = {params[cell], params[cells + cell]}, time = 0, h = 0.01;
  for (int i = 0; i < EQ; i++) y[i] = state[i * cells + cell];
  int taken = 0;
  while (time < end && taken < 10000) {
    if (time + h > end) h = end - time;
    double error = step45(y, p, h, next);
    if (error <= tolerance) {
      time += h;
      for (int i = 0; i < EQ; i++) y[i] = next[i];
      taken++;
    }
    double factor = error > 0 ? 0.9 * sqrt(sqrt(tolerance / error)) : 4;
    h *= factor < 0.1 ? 0.1 : factor > 4 ? 4 : factor;
  }
  for (int i = 0; i < EQ; i++) state[i * cells + cell] = y[i];
  steps[cell] = taken;
}

int main(int argc, char **argv) {
  const int cells = argc > 1 ? atoi(argv[1]) : 100;
  const double end = 20, tolerance = 1e-8;
  double *state = (double *)malloc(EQ * cells * sizeof(double)), *params = (double *)malloc(2 * cells * sizeof(double));
  int *steps = (int *)malloc(cells * sizeof(int)), *d_steps;
  double *d_state, *d_params;
  for (int c = 0; c < cells; c++) {
    state[c] = -1.2, state[cells + c] = -0.6, state[2 * cells + c] = 0.1, state[3 * cells + c] = 0;
    params[c] = 0.2 + 0.6 * c / cells;
    params[cells + c] = 0.05 + 0.01 * (c % 7);
  }
  CUDA_SAFE(cudaMalloc((void **)&d_state, EQ * cells * sizeof(double)));
  CUDA_SAFE(cudaMalloc((void **)&d_params, 2 * cells * sizeof(double)));
  CUDA_SAFE(cudaMalloc((void **)&d_steps, cells * sizeof(int)));
  CUDA_SAFE(cudaMemcpy(d_state, state, EQ * cells * sizeof(double), cudaMemcpyHostToDevice));
  CUDA_SAFE(cudaMemcpy(d_params, params, 2 * cells * sizeof(double), cudaMemcpyHostToDevice));
  solver<<<(cells + 31) / 32, 32>>>(d_state, d_params, d_steps, cells, end, tolerance);
  CUDA_SAFE(cudaGetLastError());
  CUDA_SAFE(cudaMemcpy(state, d_state, EQ * cells * sizeof(double), cudaMemcpyDeviceToHost));
  CUDA_SAFE(cudaMemcpy(steps, d_steps, cells * sizeof(int), cudaMemcpyDeviceToHost));
  CUDA_SAFE(cudaFree(d_state));
  CUDA_SAFE(cudaFree(d_params));
  CUDA_SAFE(cudaFree(d_steps));
  double worst = 0, mean = 0;
  int limit = 0;
  for (int c = 0; c < cells; c++) {
    /* classical Runge-Kutta with small, equal steps */
    double y[EQ] = {-1.2, -0.6, 0.1, 0}, p[2] = {params[c], params[cells + c]}, k1[EQ], k2[EQ], k3[EQ], k4[EQ], t[EQ];
    const int n = 4000;
    const double h = end / n;
    for (int s = 0; s < n; s++) {
      master(y, p, k1);
      for (int i = 0; i < EQ; i++) t[i] = y[i] + h / 2 * k1[i];
      master(t, p, k2);
      for (int i = 0; i < EQ; i++) t[i] = y[i] + h / 2 * k2[i];
      master(t, p, k3);
      for (int i = 0; i < EQ; i++) t[i] = y[i] + h * k3[i];
      master(t, p, k4);
      for (int i = 0; i < EQ; i++) y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
    }
    for (int i = 0; i < EQ; i++) worst = fmax(worst, fabs(y[i] - state[i * cells + c]));
    mean += state[c] / cells;
    limit += steps[c] >= 10000 || steps[c] < 10;
  }
  printf("%d cells, mean potential %.3f, last gate %.3f\n", cells, mean, state[4 * cells - 1]);
  free(state);
  free(params);
  free(steps);
  int ok = worst < 1e-4 && limit == 0;
  puts(ok ? "PASSED" : "FAILED");
  return !ok;
}
