// title: Jacobi iteration of a diagonally dominant system, the steps captured in a graph
// features: graphs, streams, double_precision, warp_shuffles

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS 128
#define CHK(x) \
  do { cudaError_t r_ = (x); if (r_ != cudaSuccess) { fprintf(stderr, "%d: %s\n", __LINE__, cudaGetErrorString(r_)); exit(3); } } while (0)

/* a warp a row */
__global__ void jacobi(const float *A, const double *b, const double *x, double *x_new, double *sum) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  double dot = 0;
  for (int j = lane; j < N_ROWS; j += 32) dot += (double)A[warp * N_ROWS + j] * x[j];
  for (int off = 16; off; off >>= 1) dot += __shfl_down_sync(0xffffffffu, dot, off);
  if (lane == 0) {
    double dx = (b[warp] - dot) / A[warp * N_ROWS + warp];
    x_new[warp] = x[warp] + dx;
    sum[warp] = fabs(dx);
  }
}

__global__ void total_error(const double *sum, double *total) {
  __shared__ double s[N_ROWS];
  s[threadIdx.x] = sum[threadIdx.x];
  __syncthreads();
  for (int k = N_ROWS / 2; k; k /= 2) {
    if (threadIdx.x < k) s[threadIdx.x] += s[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) *total = s[0];
}

int main(void) {
  float *A = (float *)malloc(sizeof(float) * N_ROWS * N_ROWS);
  double b[N_ROWS], x[N_ROWS], truth[N_ROWS];
  int i, j, iterations = 0;
  for (i = 0; i < N_ROWS; i++) truth[i] = 1.0 + (i % 10) * 0.25;
  for (i = 0; i < N_ROWS; i++) {
    b[i] = 0;
    for (j = 0; j < N_ROWS; j++) {
      A[i * N_ROWS + j] = i == j ? 200.0f : (float)((i * j) % 3) - 1.0f;
      b[i] += (double)A[i * N_ROWS + j] * truth[j];
    }
  }
  float *dA;
  double *db, *dx[2], *dsum, *dtotal, *total;
  CHK(cudaMalloc(&dA, sizeof(float) * N_ROWS * N_ROWS));
  CHK(cudaMalloc(&db, sizeof b));
  CHK(cudaMalloc(&dx[0], sizeof b));
  CHK(cudaMalloc(&dx[1], sizeof b));
  CHK(cudaMalloc(&dsum, sizeof b));
  CHK(cudaMalloc(&dtotal, sizeof(double)));
  CHK(cudaHostAlloc(&total, sizeof(double), cudaHostAllocDefault));
  CHK(cudaMemcpy(dA, A, sizeof(float) * N_ROWS * N_ROWS, cudaMemcpyHostToDevice));
  CHK(cudaMemcpy(db, b, sizeof b, cudaMemcpyHostToDevice));
  CHK(cudaMemset(dx[0], 0, sizeof b));

  cudaStream_t s;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHK(cudaStreamCreate(&s));
  CHK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  for (i = 0; i < 2; i++) /* two steps bring the newest values back to dx[0] */
    jacobi<<<N_ROWS / 4, 128, 0, s>>>(dA, db, dx[i], dx[1 - i], dsum);
  total_error<<<1, N_ROWS, 0, s>>>(dsum, dtotal);
  CHK(cudaMemcpyAsync(total, dtotal, sizeof(double), cudaMemcpyDeviceToHost, s));
  CHK(cudaStreamEndCapture(s, &graph));
  CHK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  do {
    CHK(cudaGraphLaunch(exec, s));
    CHK(cudaStreamSynchronize(s));
    iterations += 2;
  } while (*total > 1e-9 && iterations < 200);
  CHK(cudaMemcpy(x, dx[0], sizeof x, cudaMemcpyDeviceToHost));

  double worst = 0;
  for (i = 0; i < N_ROWS; i++) worst = fmax(worst, fabs(x[i] - truth[i]));
  printf("converged in fewer than 200 steps: %s; x[0] = %.4f, x[9] = %.4f\n", iterations < 200 ? "yes" : "no", x[0], x[9]);
  CHK(cudaGraphExecDestroy(exec));
  CHK(cudaGraphDestroy(graph));
  CHK(cudaStreamDestroy(s));
  CHK(cudaFree(dA)); CHK(cudaFree(db)); CHK(cudaFree(dx[0])); CHK(cudaFree(dx[1])); CHK(cudaFree(dsum)); CHK(cudaFree(dtotal));
  CHK(cudaFreeHost(total));
  free(A);
  puts(worst < 1e-7 && iterations < 200 ? "PASSED" : "FAILED");
  return worst < 1e-7 && iterations < 200 ? 0 : 1;
}
