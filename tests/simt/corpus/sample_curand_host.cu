// title: Numbers of cuRAND's host API: the same seeds give the same numbers, and the moments fit
// features: curand_host, streams
// flags: -lcurand

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cuda_runtime.h>
#include <curand.h>

#define CUDA_CALL(x) do { if ((x) != cudaSuccess) { \
    printf("CUDA error at %s:%d\n", __FILE__, __LINE__); exit(EXIT_FAILURE); } } while (0)
#define CURAND_CALL(x) do { curandStatus_t st = (x); if (st != CURAND_STATUS_SUCCESS) { \
    printf("cuRAND error %d at %s:%d\n", (int)st, __FILE__, __LINE__); exit(EXIT_FAILURE); } } while (0)

#define N 4096

__global__ void count_less(const float *x, int n, float limit, int *count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (x[i] < limit) atomicAdd(count, 1);
}

static int near(const char *name, const float *x, double mean, double sd) {
  double m = 0, v = 0;
  for (int i = 0; i < N; i++) m += x[i] / N;
  for (int i = 0; i < N; i++) v += (x[i] - m) * (x[i] - m) / N;
  printf("  %-11s mean %.1f deviation %.1f\n", name, m, sqrt(v));
  return fabs(m - mean) < 5 * sd / sqrt((double)N) && fabs(sqrt(v) - sd) < 0.1 * sd;
}

int main(void) {
  const curandRngType_t kinds[] = {CURAND_RNG_PSEUDO_XORWOW, CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_PHILOX4_32_10};
  const char *names[] = {"XORWOW", "MRG32k3a", "Philox"};
  float *d_x, *x = (float *)malloc(N * sizeof(float)), *again = (float *)malloc(N * sizeof(float));
  int *d_count, count, ok = 1;
  cudaStream_t stream;
  CUDA_CALL(cudaMalloc((void **)&d_x, N * sizeof(float)));
  CUDA_CALL(cudaMalloc((void **)&d_count, sizeof(int)));
  CUDA_CALL(cudaStreamCreate(&stream));
  for (int k = 0; k < 3; k++) {
    printf("%s\n", names[k]);
    curandGenerator_t gen;
    CURAND_CALL(curandCreateGenerator(&gen, kinds[k]));
    CURAND_CALL(curandSetStream(gen, stream));
    CURAND_CALL(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));
    CURAND_CALL(curandGenerateUniform(gen, d_x, N));
    CUDA_CALL(cudaMemsetAsync(d_count, 0, sizeof(int), stream));
    count_less<<<8, 128, 0, stream>>>(d_x, N, 0.25f, d_count);
    CUDA_CALL(cudaGetLastError());
    CUDA_CALL(cudaMemcpyAsync(x, d_x, N * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_CALL(cudaMemcpyAsync(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost, stream));
    CUDA_CALL(cudaStreamSynchronize(stream));
    ok &= near("uniform", x, 0.5, sqrt(1.0 / 12));
    int want = 0;
    for (int i = 0; i < N; i++) {
      want += x[i] < 0.25f;
      ok &= x[i] > 0.0f && x[i] <= 1.0f;
    }
    printf("  below 1/4: %d of %d\n", count, N);
    ok &= count == want && abs(count - N / 4) < 150;

    CURAND_CALL(curandGenerateNormal(gen, d_x, N, 10.0f, 2.0f));
    CUDA_CALL(cudaMemcpyAsync(x, d_x, N * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_CALL(cudaStreamSynchronize(stream));
    ok &= near("normal", x, 10.0, 2.0);
    CURAND_CALL(curandGenerateLogNormal(gen, d_x, N, 0.0f, 0.5f));
    CUDA_CALL(cudaMemcpyAsync(x, d_x, N * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA_CALL(cudaStreamSynchronize(stream));
    ok &= near("log-normal", x, exp(0.125), sqrt((exp(0.25) - 1) * exp(0.25)));
    CURAND_CALL(curandDestroyGenerator(gen));

    /* A second generator with the seed of the first gives the same numbers, and so does a restart. */
    CURAND_CALL(curandCreateGenerator(&gen, kinds[k]));
    CURAND_CALL(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));
    CURAND_CALL(curandGenerateUniform(gen, d_x, N));
    CUDA_CALL(cudaMemcpy(x, d_x, N * sizeof(float), cudaMemcpyDeviceToHost));
    CURAND_CALL(curandSetPseudoRandomGeneratorSeed(gen, 1234ULL));
    CURAND_CALL(curandSetGeneratorOffset(gen, 0ULL));
    CURAND_CALL(curandGenerateUniform(gen, d_x, N));
    CUDA_CALL(cudaMemcpy(again, d_x, N * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++) ok &= again[i] == x[i];
    CURAND_CALL(curandDestroyGenerator(gen));
  }
  CUDA_CALL(cudaStreamDestroy(stream));
  CUDA_CALL(cudaFree(d_x));
  CUDA_CALL(cudaFree(d_count));
  free(x);
  free(again);
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
