// title: Gaussian elimination, two kernels a column
// features: two_dimensional_grids, timers
// args: 64

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define MAXBLOCKSIZE 64
#define BLOCK_SIZE_XY 8

static void checkCUDAError(const char *msg) {
  cudaError_t err = cudaGetLastError();
  if (cudaSuccess != err) {
    fprintf(stderr, "Cuda error: %s: %s.\n", msg, cudaGetErrorString(err));
    exit(EXIT_FAILURE);
  }
}

/* the multipliers of column t */
__global__ void Fan1(float *m, const float *a, int size, int t) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= size - 1 - t) return;
  m[size * (i + t + 1) + t] = a[size * (i + t + 1) + t] / a[size * t + t];
}

__global__ void Fan2(const float *m, float *a, float *b, int size, int t) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= size - 1 - t || y >= size - t) return;
  a[size * (x + 1 + t) + (y + t)] -= m[size * (x + 1 + t) + t] * a[size * t + (y + t)];
  if (y == 0) b[x + 1 + t] -= m[size * (x + 1 + t) + t] * b[t];
}

static double now(void) {
  struct timeval tv;
  gettimeofday(&tv, NULL);
  return tv.tv_sec + tv.tv_usec * 1e-6;
}

/* a matrix whose entries fall off from the diagonal */
static void create_matrix(float *m, int size) {
  for (int i = 0; i < size; i++)
    for (int j = 0; j < size; j++) m[i * size + j] = 10.0f * expf(-0.1f * abs(i - j));
}

int main(int argc, char *argv[]) {
  int size = argc > 1 ? atoi(argv[1]) : 64, t, i, j;
  size_t bytes = size * size * sizeof(float);
  float *a = (float *)malloc(bytes), *b = (float *)malloc(size * sizeof(float));
  double *x = (double *)malloc(size * sizeof(double));
  create_matrix(a, size);
  for (i = 0; i < size; i++) {
    double sum = 0;
    for (j = 0; j < size; j++) sum += (double)a[i * size + j] * (1 + j % 4); /* the solution is 1 2 3 4 1 2 ... */
    b[i] = (float)sum;
  }
  float *m_cuda, *a_cuda, *b_cuda;
  cudaMalloc((void **)&m_cuda, bytes);
  cudaMalloc((void **)&a_cuda, bytes);
  cudaMalloc((void **)&b_cuda, size * sizeof(float));
  checkCUDAError("allocation");
  cudaMemset(m_cuda, 0, bytes);
  cudaMemcpy(a_cuda, a, bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b_cuda, b, size * sizeof(float), cudaMemcpyHostToDevice);
  checkCUDAError("copy");
  dim3 block1(MAXBLOCKSIZE), grid1((size + MAXBLOCKSIZE - 1) / MAXBLOCKSIZE);
  dim3 block2(BLOCK_SIZE_XY, BLOCK_SIZE_XY), grid2((size + BLOCK_SIZE_XY - 1) / BLOCK_SIZE_XY, (size + BLOCK_SIZE_XY - 1) / BLOCK_SIZE_XY);
  double start = now();
  for (t = 0; t < size - 1; t++) {
    Fan1<<<grid1, block1>>>(m_cuda, a_cuda, size, t);
    checkCUDAError("Fan1");
    Fan2<<<grid2, block2>>>(m_cuda, a_cuda, b_cuda, size, t);
    checkCUDAError("Fan2");
  }
  cudaDeviceSynchronize();
  fprintf(stderr, "elimination: %f s\n", now() - start);
  cudaMemcpy(a, a_cuda, bytes, cudaMemcpyDeviceToHost);
  cudaMemcpy(b, b_cuda, size * sizeof(float), cudaMemcpyDeviceToHost);
  checkCUDAError("copy back");
  cudaFree(m_cuda);
  cudaFree(a_cuda);
  cudaFree(b_cuda);
  checkCUDAError("free");

  for (i = size - 1; i >= 0; i--) {
    double sum = b[i];
    for (j = i + 1; j < size; j++) sum -= (double)a[i * size + j] * x[j];
    x[i] = sum / a[i * size + i];
  }
  double worst = 0, det = 0;
  for (i = 0; i < size; i++) {
    worst = fmax(worst, fabs(x[i] - (1 + i % 4)));
    det += log(fabs(a[i * size + i]));
    for (j = 0; j < i; j++) worst = fmax(worst, fabs(a[i * size + j]));
  }
  printf("x = %.2f %.2f %.2f %.2f ..., log of the determinant %.2f\n", x[0] + 0.0, x[1], x[2], x[3], det);
  /* its determinant: 10^n (1 - exp(-0.2))^(n - 1) */
  double want = size * log(10.0) + (size - 1) * log(1 - exp(-0.2));
  int ok = worst < 0.01 && fabs(det - want) < 0.01;
  free(a);
  free(b);
  free(x);
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
