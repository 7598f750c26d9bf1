// title: sum of two vectors in C style, with one exit for every error
// features: vector_basics, error_handling, events
// args: 5000 256

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cuda_runtime.h>

/* Adds the vectors on the GPU. The caller owns the host arrays. */
cudaError_t addWithCuda(float *c, const float *a, const float *b, unsigned int size, unsigned int threads);

__global__ void addKernel(float *c, const float *a, const float *b, unsigned int size) {
  unsigned int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < size) c[i] = a[i] + b[i];
}

/* The same, but each thread computes two neighbouring elements. */
__global__ void addPairsKernel(float *c, const float *a, const float *b, unsigned int size) {
  unsigned int i = 2 * (blockDim.x * blockIdx.x + threadIdx.x);
  if (i < size) c[i] = a[i] + b[i];
  if (i + 1 < size) c[i + 1] = a[i + 1] + b[i + 1];
}

static int compare(const float *c, const float *a, const float *b, unsigned int size, const char *what) {
  unsigned int i, wrong = 0;
  double sum = 0;
  for (i = 0; i < size; ++i) {
    double expected = (double)a[i] + (double)b[i];
    if (fabs(c[i] - expected) > 1e-5) ++wrong;
    sum += c[i];
  }
  printf("%-18s n = %u, wrong = %u, sum = %.1f\n", what, size, wrong, sum);
  return wrong == 0;
}

int main(int argc, char **argv) {
  unsigned int n = 5000, threads = 256, i;
  float *a, *b, *c;
  int ok = 1;
  cudaError_t status;

  if (argc > 1) n = (unsigned int)strtoul(argv[1], NULL, 10);
  if (argc > 2) threads = (unsigned int)strtoul(argv[2], NULL, 10);

  a = (float *)malloc(n * sizeof(float));
  b = (float *)malloc(n * sizeof(float));
  c = (float *)malloc(n * sizeof(float));
  if (!a || !b || !c) {
    fprintf(stderr, "out of host memory\n");
    return 1;
  }
  for (i = 0; i < n; ++i) {
    a[i] = (float)(i % 100) * 0.5f;
    b[i] = (float)((i * 7) % 50) * 0.25f;
  }

  memset(c, 0, n * sizeof(float));
  status = addWithCuda(c, a, b, n, threads);
  if (status != cudaSuccess) {
    fprintf(stderr, "addWithCuda failed!\n");
    return 1;
  }
  ok &= compare(c, a, b, n, "one per thread");

  /* A block that is too large must be refused, and the error must be gone after it was read. */
  status = addWithCuda(c, a, b, n, 4096);
  printf("4096 threads per block: %s\n", cudaGetErrorName(status));
  ok &= status == cudaErrorInvalidConfiguration || status == cudaErrorInvalidValue;
  ok &= cudaGetLastError() == cudaSuccess;

  free(a);
  free(b);
  free(c);
  if (cudaDeviceReset() != cudaSuccess) {
    fprintf(stderr, "cudaDeviceReset failed!\n");
    return 1;
  }
  printf(ok ? "PASSED\n" : "FAILED\n");
  return ok ? 0 : 1;
}

cudaError_t addWithCuda(float *c, const float *a, const float *b, unsigned int size, unsigned int threads) {
  float *dev_a = 0;
  float *dev_b = 0;
  float *dev_c = 0;
  cudaEvent_t start = 0, stop = 0;
  float ms = 0;
  cudaError_t cudaStatus;

  cudaStatus = cudaSetDevice(0);
  if (cudaStatus != cudaSuccess) {
    fprintf(stderr, "cudaSetDevice failed!  Do you have a CUDA-capable GPU installed?");
    goto Error;
  }

  if ((cudaStatus = cudaMalloc((void **)&dev_c, size * sizeof(float))) != cudaSuccess) goto Error;
  if ((cudaStatus = cudaMalloc((void **)&dev_a, size * sizeof(float))) != cudaSuccess) goto Error;
  if ((cudaStatus = cudaMalloc((void **)&dev_b, size * sizeof(float))) != cudaSuccess) goto Error;

  cudaStatus = cudaMemcpy(dev_a, a, size * sizeof(float), cudaMemcpyHostToDevice);
  if (cudaStatus != cudaSuccess) goto Error;
  cudaStatus = cudaMemcpy(dev_b, b, size * sizeof(float), cudaMemcpyHostToDevice);
  if (cudaStatus != cudaSuccess) goto Error;

  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  cudaEventRecord(start, 0);
  addKernel<<<(size + threads - 1) / threads, threads>>>(dev_c, dev_a, dev_b, size);
  cudaStatus = cudaGetLastError();
  if (cudaStatus != cudaSuccess) {
    fprintf(stderr, "addKernel launch failed: %s\n", cudaGetErrorString(cudaStatus));
    goto Error;
  }
  addPairsKernel<<<(size / 2 + threads) / threads, threads>>>(dev_c, dev_a, dev_b, size);
  cudaEventRecord(stop, 0);
  cudaStatus = cudaEventSynchronize(stop);
  if (cudaStatus != cudaSuccess) goto Error;
  cudaEventElapsedTime(&ms, start, stop);
  fprintf(stderr, "%u elements in %g ms\n", size, ms);

  cudaStatus = cudaMemcpy(c, dev_c, size * sizeof(float), cudaMemcpyDeviceToHost);

Error:
  if (start) cudaEventDestroy(start);
  if (stop) cudaEventDestroy(stop);
  cudaFree(dev_c);
  cudaFree(dev_a);
  cudaFree(dev_b);
  return cudaStatus;
}
