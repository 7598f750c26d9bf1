#include "gpu_vector.h"

void reference_axpy(int n, float a, const float *restrict x, float *restrict y) {
  for (int i = 0; i < n; i++) y[i] = (float)(y[i] + (double)a * x[i]);
}

double reference_dot(int n, const float *x, const float *y) {
  double sum = 0;
  while (n--) sum += (double)*x++ * *y++;
  return sum;
}

void reference_map(int n, float *x, gpu_function f) {
  for (float *end = x + n; x != end; x++)
    if (f == GPU_NEGATE)
      *x = -*x;
    else if (f == GPU_SQUARE)
      *x = *x * *x;
    else
      *x = *x < -1 ? -1 : *x > 1 ? 1 : *x;
}
