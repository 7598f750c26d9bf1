// title: LU decomposition by blocks: diagonal, perimeter and internal kernels
// features: shared_memory, templates, unrolling
// args: 64

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef BLOCK_SIZE
#define BLOCK_SIZE 16
#endif

#define CUDA_CHECK_RETURN(value)                                                             \
  {                                                                                          \
    cudaError_t _m_cudaStat = value;                                                         \
    if (_m_cudaStat != cudaSuccess) {                                                        \
      fprintf(stderr, "Error %s at line %d in file %s\n", cudaGetErrorString(_m_cudaStat), __LINE__, __FILE__); \
      exit(1);                                                                               \
    }                                                                                        \
  }

__global__ void lud_diagonal(float *m, int dim, int offset) {
  __shared__ float shadow[BLOCK_SIZE][BLOCK_SIZE];
  int array_offset = offset * dim + offset;
  for (int i = 0; i < BLOCK_SIZE; i++) shadow[i][threadIdx.x] = m[array_offset + i * dim + threadIdx.x];
  __syncthreads();
  for (int i = 0; i < BLOCK_SIZE - 1; i++) {
    if (threadIdx.x > i) {
      for (int j = 0; j < i; j++) shadow[threadIdx.x][i] -= shadow[threadIdx.x][j] * shadow[j][i];
      shadow[threadIdx.x][i] /= shadow[i][i];
    }
    __syncthreads();
    if (threadIdx.x > i)
      for (int j = 0; j < i + 1; j++) shadow[i + 1][threadIdx.x] -= shadow[i + 1][j] * shadow[j][threadIdx.x];
    __syncthreads();
  }
  for (int i = 1; i < BLOCK_SIZE; i++) m[array_offset + i * dim + threadIdx.x] = shadow[i][threadIdx.x];
}

/* The first half of the threads makes a block of the row, the other half one of the column. */
__global__ void lud_perimeter(float *m, int dim, int offset) {
  __shared__ float dia[BLOCK_SIZE][BLOCK_SIZE], row[BLOCK_SIZE][BLOCK_SIZE], col[BLOCK_SIZE][BLOCK_SIZE];
  int is_row = threadIdx.x < BLOCK_SIZE, idx = threadIdx.x % BLOCK_SIZE;
  int row_at = offset * dim + offset + (blockIdx.x + 1) * BLOCK_SIZE;
  int col_at = (offset + (blockIdx.x + 1) * BLOCK_SIZE) * dim + offset;
  for (int i = 0; i < BLOCK_SIZE; i++) {
    if (is_row) {
      dia[i][idx] = m[(offset + i) * dim + offset + idx];
      row[i][idx] = m[row_at + i * dim + idx];
    } else {
      col[i][idx] = m[col_at + i * dim + idx];
    }
  }
  __syncthreads();
  if (is_row) {
    for (int i = 1; i < BLOCK_SIZE; i++)
      for (int j = 0; j < i; j++) row[i][idx] -= dia[i][j] * row[j][idx];
  } else {
    for (int i = 0; i < BLOCK_SIZE; i++) {
      for (int j = 0; j < i; j++) col[idx][i] -= col[idx][j] * dia[j][i];
      col[idx][i] /= dia[i][i];
    }
  }
  __syncthreads();
  for (int i = 0; i < BLOCK_SIZE; i++) {
    if (is_row)
      m[row_at + i * dim + idx] = row[i][idx];
    else
      m[col_at + i * dim + idx] = col[i][idx];
  }
}

__global__ void lud_internal(float *m, int dim, int offset) {
  __shared__ float row[BLOCK_SIZE][BLOCK_SIZE], col[BLOCK_SIZE][BLOCK_SIZE];
  int global_row = offset + (blockIdx.y + 1) * BLOCK_SIZE, global_col = offset + (blockIdx.x + 1) * BLOCK_SIZE;
  row[threadIdx.y][threadIdx.x] = m[(offset + threadIdx.y) * dim + global_col + threadIdx.x];
  col[threadIdx.y][threadIdx.x] = m[(global_row + threadIdx.y) * dim + offset + threadIdx.x];
  __syncthreads();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < BLOCK_SIZE; i++) sum += col[threadIdx.y][i] * row[i][threadIdx.x];
  m[(global_row + threadIdx.y) * dim + global_col + threadIdx.x] -= sum;
}

void lud_cuda(float *m, int dim) {
  int i = 0;
  dim3 block(BLOCK_SIZE, BLOCK_SIZE);
  for (; i < dim - BLOCK_SIZE; i += BLOCK_SIZE) {
    int rest = (dim - i) / BLOCK_SIZE - 1;
    lud_diagonal<<<1, BLOCK_SIZE>>>(m, dim, i);
    lud_perimeter<<<rest, BLOCK_SIZE * 2>>>(m, dim, i);
    lud_internal<<<dim3(rest, rest), block>>>(m, dim, i);
  }
  lud_diagonal<<<1, BLOCK_SIZE>>>(m, dim, i);
}

int main(int argc, char *argv[]) {
  int dim = argc > 1 ? atoi(argv[1]) : 64, i, j, k;
  assert(dim % BLOCK_SIZE == 0);
  float *a = (float *)malloc(dim * dim * sizeof(float)), *lu = (float *)malloc(dim * dim * sizeof(float)), *d;
  for (i = 0; i < dim; i++)
    for (j = 0; j < dim; j++) a[i * dim + j] = i == j ? (float)(dim + i % 3) : (float)((i * 7 + j * 3) % 11) / 8;
  CUDA_CHECK_RETURN(cudaMalloc((void **)&d, dim * dim * sizeof(float)));
  CUDA_CHECK_RETURN(cudaMemcpy(d, a, dim * dim * sizeof(float), cudaMemcpyHostToDevice));
  lud_cuda(d, dim);
  CUDA_CHECK_RETURN(cudaGetLastError());
  CUDA_CHECK_RETURN(cudaMemcpy(lu, d, dim * dim * sizeof(float), cudaMemcpyDeviceToHost));
  CUDA_CHECK_RETURN(cudaFree(d));
  double worst = 0, logdet = 0;
  for (i = 0; i < dim; i++) {
    for (j = 0; j < dim; j++) { /* L times U is the matrix again */
      double sum = 0;
      for (k = 0; k <= (i < j ? i : j); k++) sum += (k == i ? 1.0 : (double)lu[i * dim + k]) * lu[k * dim + j];
      worst = fmax(worst, fabs(sum - a[i * dim + j]));
    }
    logdet += log(fabs(lu[i * dim + i]));
  }
  printf("%d x %d: log of the determinant %.3f\n", dim, dim, logdet);
  free(a);
  free(lu);
  puts(worst < 1e-3 ? "PASSED" : "FAILED");
  return worst < 1e-3 ? 0 : 1;
}
