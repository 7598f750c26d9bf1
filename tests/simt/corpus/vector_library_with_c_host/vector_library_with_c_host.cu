// title: a library of kernels behind a C interface, with a main program and a reference in C
// features: several_files, c_host_code, error_handling, opaque_handles, c_files
// files: main.c reference.c

#include "gpu_vector.h"

#include <stdio.h>
#include <stdlib.h>

struct gpu_vector {
  float *data;
  int n;
};

static gpu_status last_status = GPU_OK;

static bool failed(cudaError_t e) {
  if (e == cudaSuccess) return false;
  fprintf(stderr, "gpu_vector: %s\n", cudaGetErrorString(e));
  last_status = e == cudaErrorMemoryAllocation ? GPU_NO_MEMORY : GPU_ERROR;
  return true;
}

__global__ static void axpy_kernel(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a * x[i];
}

__global__ static void dot_kernel(int n, const float *x, const float *y, double *result) {
  double sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += (double)x[i] * y[i];
  for (int o = 16; o > 0; o /= 2) sum += __shfl_down_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

__global__ static void map_kernel(int n, float *x, gpu_function f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  switch (f) {
    case GPU_NEGATE: x[i] = -x[i]; break;
    case GPU_SQUARE: x[i] = x[i] * x[i]; break;
    case GPU_CLAMP: x[i] = fminf(fmaxf(x[i], -1.0f), 1.0f); break;
  }
}

extern "C" {

gpu_vector *gpu_vector_create(const float *values, int n) {
  gpu_vector *v = (gpu_vector *)malloc(sizeof(*v));
  v->n = n;
  if (failed(cudaMalloc((void **)&v->data, n * sizeof(float))) ||
      failed(cudaMemcpy(v->data, values, n * sizeof(float), cudaMemcpyHostToDevice))) {
    free(v);
    return NULL;
  }
  return v;
}

void gpu_vector_destroy(gpu_vector *v) {
  if (!v) return;
  failed(cudaFree(v->data));
  free(v);
}

void gpu_vector_read(const gpu_vector *v, float *values) {
  failed(cudaMemcpy(values, v->data, v->n * sizeof(float), cudaMemcpyDeviceToHost));
}

void gpu_axpy(float a, const gpu_vector *x, gpu_vector *y) {
  axpy_kernel<<<(x->n + 127) / 128, 128>>>(x->n, a, x->data, y->data);
  failed(cudaGetLastError());
}

double gpu_dot(const gpu_vector *x, const gpu_vector *y) {
  double *d, result = 0;
  if (failed(cudaMalloc((void **)&d, sizeof(double)))) return 0;
  failed(cudaMemcpy(d, &result, sizeof(double), cudaMemcpyHostToDevice));
  dot_kernel<<<4, 96>>>(x->n, x->data, y->data, d);
  failed(cudaGetLastError());
  failed(cudaMemcpy(&result, d, sizeof(double), cudaMemcpyDeviceToHost));
  failed(cudaFree(d));
  return result;
}

void gpu_map(gpu_vector *x, gpu_function f) {
  map_kernel<<<(x->n + 127) / 128, 128>>>(x->n, x->data, f);
  failed(cudaGetLastError());
}

gpu_status gpu_last_status(void) {
  gpu_status s = last_status;
  last_status = GPU_OK;
  return s;
}

}  // extern "C"
