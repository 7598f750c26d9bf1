#include "gpu_vector.h"

#include <stdio.h>
#include <stdlib.h>

static int differences(const gpu_vector *v, const float *expected, int n) {
  int i, wrong = 0;
  float *got = malloc(n * sizeof *got); /* C converts from void * by itself */
  gpu_vector_read(v, got);
  for (i = 0; i < n; i++) wrong += got[i] != expected[i];
  free(got);
  return wrong;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1234, i, wrong = 0;
  float *x = malloc(n * sizeof *x), *y = malloc(n * sizeof *y);
  gpu_vector *class, *new; /* names that C++ would not take */
  const gpu_function functions[] = {[0] = GPU_NEGATE, [1] = GPU_SQUARE, [2] = GPU_CLAMP};

  for (i = 0; i < n; i++) {
    x[i] = (float)(i % 9) - 4;
    y[i] = (float)(i % 5) / 2;
  }
  class = gpu_vector_create(x, n);
  new = gpu_vector_create(y, n);
  if (!class || !new) return 2;

  gpu_axpy(0.5f, class, new);
  reference_axpy(n, 0.5f, x, y);
  wrong += differences(new, y, n);
  printf("axpy: %d wrong\n", wrong);

  printf("dot: %.2f\n", gpu_dot(class, new));
  wrong += gpu_dot(class, new) != reference_dot(n, x, y);

  for (i = 0; i < 3; i++) {
    gpu_map(new, functions[i]);
    reference_map(n, y, functions[i]);
    wrong += differences(new, y, n);
    printf("map %d: %d wrong\n", functions[i], wrong);
  }
  wrong += gpu_last_status() != GPU_OK;
  gpu_vector_destroy(class);
  gpu_vector_destroy(new);
  free(x);
  free(y);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
