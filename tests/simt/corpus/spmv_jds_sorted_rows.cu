// title: sparse matrix times vector in JDS: rows sorted by length, stored in jagged columns
// features: sparse_matrices, constant_memory, shared_memory

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#define MAX_DEPTH 64
#define THREADS 64

__constant__ int jds_ptr_int[MAX_DEPTH];
__constant__ int sh_zcnt_int[MAX_DEPTH];

#define CUERR                                                                             \
  {                                                                                       \
    cudaError_t err;                                                                      \
    if ((err = cudaGetLastError()) != cudaSuccess) {                                      \
      fprintf(stderr, "CUDA error: %s, line %d\n", cudaGetErrorString(err), __LINE__);    \
      return -1;                                                                          \
    }                                                                                     \
  }

__global__ void spmv_jds(float *dst_vector, const float *d_data, const int *d_index, const int *d_perm,
                         const float *x_vec, const int dim) {
  int ix = blockIdx.x * blockDim.x + threadIdx.x;
  int warp_id = ix >> 5;
  if (ix < dim) {
    float sum = 0.0f;
    int bound = sh_zcnt_int[warp_id];
    if (bound > 0) {
      int j = jds_ptr_int[0] + ix;
      float d = d_data[j];
      float t = x_vec[d_index[j]];
      /* elements of the next column are read before the current is used */
      for (int k = 1; k < bound; k++) {
        int in = jds_ptr_int[k] + ix;
        float d_next = d_data[in];
        float t_next = x_vec[d_index[in]];
        sum += d * t;
        d = d_next;
        t = t_next;
      }
      sum += d * t;
    }
    dst_vector[d_perm[ix]] = sum;
  }
}

struct row {
  int original, length;
};

static int longer_first(const void *a, const void *b) {
  const struct row *x = (const struct row *)a, *y = (const struct row *)b;
  return x->length != y->length ? y->length - x->length : x->original - y->original;
}

static int row_length(int r) { return 1 + (r * 7) % 19 + (r % 40 == 3 ? 20 : 0); }
static int column_of(int r, int e, int dim) { return (r + e * 11) % dim; }
static float value_of(int r, int e) { return (float)((r * 3 + e * 5) % 13) - 6.0f; }

int main(int argc, char **argv) {
  const int dim = argc > 1 ? atoi(argv[1]) : 500;
  const int padded = (dim + 31) / 32 * 32;
  struct row *rows = (struct row *)malloc(dim * sizeof(struct row));
  for (int r = 0; r < dim; r++) {
    rows[r].original = r;
    rows[r].length = row_length(r);
  }
  qsort(rows, dim, sizeof(rows[0]), longer_first);
  const int depth = rows[0].length;
  if (depth > MAX_DEPTH || padded / 32 > MAX_DEPTH) return 1;

  /* The rows of a warp are padded to the length of the longest: a column holds a whole number of warps. */
  int ptr[MAX_DEPTH] = {0}, zcnt[MAX_DEPTH] = {0}, len = 0;
  for (int w = 0; w < padded / 32; w++) zcnt[w] = rows[w * 32].length;
  for (int k = 0; k < depth; k++) {
    ptr[k] = len;
    for (int w = 0; w < padded / 32 && zcnt[w] > k; w++) len += 32;
  }
  float *data = (float *)calloc(len, sizeof(float)), *x = (float *)malloc(dim * sizeof(float));
  int *index = (int *)calloc(len, sizeof(int)), *perm = (int *)malloc(dim * sizeof(int));
  float *y = (float *)malloc(dim * sizeof(float));
  for (int i = 0; i < dim; i++) {
    perm[i] = rows[i].original;
    x[i] = (float)(i % 10) * 0.5f;
    for (int k = 0; k < rows[i].length; k++) {
      data[ptr[k] + i] = value_of(perm[i], k);
      index[ptr[k] + i] = column_of(perm[i], k, dim);
    }
  }

  float *d_data, *d_x, *d_y;
  int *d_index, *d_perm;
  cudaMalloc((void **)&d_data, len * sizeof(float));
  cudaMalloc((void **)&d_index, len * sizeof(int));
  cudaMalloc((void **)&d_perm, dim * sizeof(int));
  cudaMalloc((void **)&d_x, dim * sizeof(float));
  cudaMalloc((void **)&d_y, dim * sizeof(float));
  CUERR
  cudaMemset((void *)d_y, 0, dim * sizeof(float));
  cudaMemcpy(d_data, data, len * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_index, index, len * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_perm, perm, dim * sizeof(int), cudaMemcpyHostToDevice);
  cudaMemcpy(d_x, x, dim * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpyToSymbol(jds_ptr_int, ptr, depth * sizeof(int));
  cudaMemcpyToSymbol(sh_zcnt_int, zcnt, padded / 32 * sizeof(int));
  CUERR
  for (int i = 0; i < 3; i++)
    spmv_jds<<<(dim + THREADS - 1) / THREADS, THREADS>>>(d_y, d_data, d_index, d_perm, d_x, dim);
  CUERR
  cudaDeviceSynchronize();
  cudaMemcpy(y, d_y, dim * sizeof(float), cudaMemcpyDeviceToHost);
  CUERR

  int wrong = 0;
  double sum = 0;
  for (int r = 0; r < dim; r++) {
    double expected = 0;
    for (int e = 0; e < row_length(r); e++) expected += (double)value_of(r, e) * x[column_of(r, e, dim)];
    if (fabs(expected - y[r]) > 1e-3) wrong++;
    sum += y[r];
  }
  printf("dim %d, depth %d, stored %d, sum %.2f, wrong %d\n", dim, depth, len, sum, wrong);

  cudaFree(d_data);
  cudaFree(d_index);
  cudaFree(d_perm);
  cudaFree(d_x);
  cudaFree(d_y);
  free(rows);
  free(data);
  free(x);
  free(index);
  free(perm);
  free(y);
  printf(wrong ? "FAILED\n" : "PASSED\n");
  return wrong ? 1 : 0;
}
