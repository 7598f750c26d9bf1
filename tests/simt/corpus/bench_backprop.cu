// title: Back-propagation of a network with one hidden layer: a forward pass and weight updates
// features: shared_memory, two_dimensional_blocks
// args: 256

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <cuda_runtime.h>

#define HEIGHT 16 /* rows of a block */
#define WIDTH 16  /* hidden units */
#define ETA 0.3f
#define MOMENTUM 0.3f

#define CUDA_CALL(x) \
  { const cudaError_t a = (x); if (a != cudaSuccess) { printf("\nCUDA error: %s (%d)\n", cudaGetErrorString(a), a); exit(1); } }

/* Partial products of 16 inputs with all hidden weights, summed by a tree over the rows. */
__global__ void layerforward(const float *input, const float *weights, float *partial) {
  __shared__ float node[HEIGHT];
  __shared__ float matrix[HEIGHT][WIDTH];
  int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int index = (WIDTH + 1) * (HEIGHT * by + ty + 1) + tx + 1;
  if (tx == 0) node[ty] = input[HEIGHT * by + ty + 1];
  __syncthreads();
  matrix[ty][tx] = weights[index] * node[ty];
  __syncthreads();
  for (int i = 1; i <= HEIGHT; i *= 2) {
    if (i > 1 && ty % i == 0) matrix[ty][tx] += matrix[ty + i / 2][tx];
    __syncthreads();
  }
  if (ty == 0) partial[by * WIDTH + tx] = matrix[0][tx];
}

__global__ void adjust_weights(const float *delta, const float *layer, float *w, float *oldw) {
  int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int index = (WIDTH + 1) * (HEIGHT * by + ty + 1) + tx + 1, x = tx + 1, y = HEIGHT * by + ty + 1;
  float change = ETA * delta[x] * layer[y] + MOMENTUM * oldw[index];
  w[index] += change;
  oldw[index] = change;
  if (ty == 0 && by == 0) { /* the bias: row 0 */
    change = ETA * delta[x] + MOMENTUM * oldw[x];
    w[x] += change;
    oldw[x] = change;
  }
}

static double squash(double x) { return 1.0 / (1.0 + exp(-x)); }

static float value(int i) { return (float)((i * 2654435761u >> 16) % 1000) / 1000.0f; }

int main(int argc, char **argv) {
  int in = argc > 1 ? atoi(argv[1]) : 256;
  if (in % HEIGHT) { fprintf(stderr, "the input size must be a multiple of 16\n"); return 1; }
  int cells = (in + 1) * (WIDTH + 1), blocks = in / HEIGHT, step, i, j;
  float *input = (float *)malloc((in + 1) * sizeof(float)), *w = (float *)malloc(cells * sizeof(float));
  float *partial = (float *)malloc(blocks * WIDTH * sizeof(float)), delta[WIDTH + 1], out_w[WIDTH + 1];
  double *model = (double *)malloc(cells * sizeof(double)), *old = (double *)calloc(cells, sizeof(double)), worst = 0, first = 0, last = 0;
  for (i = 0; i <= in; i++) input[i] = i ? value(i) : 1.0f;
  for (i = 0; i < cells; i++) model[i] = w[i] = (value(i + 77) - 0.5f) * 0.2f;
  for (j = 0; j <= WIDTH; j++) out_w[j] = value(j + 5) - 0.5f;
  float *d_in, *d_w, *d_old, *d_partial, *d_delta;
  CUDA_CALL(cudaMalloc((void **)&d_in, (in + 1) * sizeof(float)));
  CUDA_CALL(cudaMalloc((void **)&d_w, cells * sizeof(float)));
  CUDA_CALL(cudaMalloc((void **)&d_old, cells * sizeof(float)));
  CUDA_CALL(cudaMalloc((void **)&d_partial, blocks * WIDTH * sizeof(float)));
  CUDA_CALL(cudaMalloc((void **)&d_delta, (WIDTH + 1) * sizeof(float)));
  CUDA_CALL(cudaMemcpy(d_in, input, (in + 1) * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CALL(cudaMemcpy(d_w, w, cells * sizeof(float), cudaMemcpyHostToDevice));
  CUDA_CALL(cudaMemset(d_old, 0, cells * sizeof(float)));
  dim3 grid(1, blocks), threads(WIDTH, HEIGHT);
  for (step = 0; step < 4; step++) {
    layerforward<<<grid, threads>>>(d_in, d_w, d_partial);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaMemcpy(partial, d_partial, blocks * WIDTH * sizeof(float), cudaMemcpyDeviceToHost));
    double hidden[WIDTH + 1], expected[WIDTH + 1], out = out_w[0];
    for (j = 1; j <= WIDTH; j++) {
      double sum = model[j], gpu = 0; /* the bias */
      for (i = 1; i <= in; i++) sum += model[i * (WIDTH + 1) + j] * input[i];
      for (i = 0; i < blocks; i++) gpu += partial[i * WIDTH + j - 1];
      worst = fmax(worst, fabs(gpu + model[j] - sum));
      expected[j] = squash(sum);
      hidden[j] = squash(gpu + model[j]);
      out += out_w[j] * hidden[j];
    }
    out = squash(out);
    double err = 0.9 - out, d_out = out * (1 - out) * err;
    if (step == 0) first = fabs(err);
    last = fabs(err);
    delta[0] = 0;
    for (j = 1; j <= WIDTH; j++) delta[j] = (float)(expected[j] * (1 - expected[j]) * d_out * out_w[j]);
    CUDA_CALL(cudaMemcpy(d_delta, delta, sizeof delta, cudaMemcpyHostToDevice));
    adjust_weights<<<grid, threads>>>(d_delta, d_in, d_w, d_old);
    CUDA_CALL(cudaGetLastError());
    for (i = 0; i <= in; i++)
      for (j = 1; j <= WIDTH; j++) {
        int k = i * (WIDTH + 1) + j;
        double change = ETA * (double)delta[j] * (i ? input[i] : 1.0) + MOMENTUM * old[k];
        model[k] += change;
        old[k] = change;
      }
  }
  CUDA_CALL(cudaMemcpy(w, d_w, cells * sizeof(float), cudaMemcpyDeviceToHost));
  for (i = 0; i <= in; i++)
    for (j = 1; j <= WIDTH; j++) worst = fmax(worst, fabs(w[i * (WIDTH + 1) + j] - model[i * (WIDTH + 1) + j]));
  printf("error %.3f before, %.3f after, smaller: %s\n", first, last, last < first ? "yes" : "no");
  CUDA_CALL(cudaFree(d_in)); CUDA_CALL(cudaFree(d_w)); CUDA_CALL(cudaFree(d_old)); CUDA_CALL(cudaFree(d_partial)); CUDA_CALL(cudaFree(d_delta));
  free(input); free(w); free(partial); free(model); free(old);
  int ok = worst < 1e-4 && last < first;
  puts(ok ? "PASSED" : "FAILED");
  return !ok;
}
