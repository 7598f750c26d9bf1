// title: OpenMP threads that dispatch kernels to streams of their own, and share the work with the GPU
// features: openmp, streams, host_threads, thread_safety
// flags: -fopenmp

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 3000
#define NSTREAM 4

#define CHECK(call)                                                            \
  {                                                                            \
    const cudaError_t error = call;                                            \
    if (error != cudaSuccess) {                                                \
      fprintf(stderr, "Error: %s:%d, ", __FILE__, __LINE__);                   \
      fprintf(stderr, "reason: %s\n", cudaGetErrorString(error));              \
      exit(1);                                                                 \
    }                                                                          \
  }

// a predefined function
__global__ void kernelAddConstant(int *g_a, const int b, int n) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < n) g_a[idx] += b;
}

__global__ void kernel_1(double *out, int stream) {
  double sum = 0.0;
  for (int i = 0; i < 200; i++) sum = sum + (i % 3) * stream;
  out[threadIdx.x] = sum;
}
__global__ void kernel_2(double *out) { out[threadIdx.x] = out[threadIdx.x] * 2.0 + threadIdx.x; }
__global__ void kernel_3(double *out) {
  __shared__ double s[64];
  s[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}

// Counts primes in [from, to) on the device.
__global__ void count_primes(int from, int to, int *count) {
  int n = from + blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= to || n < 2) return;
  for (int d = 2; d * d <= n; d++)
    if (n % d == 0) return;
  atomicAdd(count, 1);
}

static int is_prime(int n) {
  if (n < 2) return 0;
  for (int d = 2; d * d <= n; d++)
    if (n % d == 0) return 0;
  return 1;
}

int main(int argc, char *argv[]) {
  int failures = 0, num_gpus = 0;
  CHECK(cudaGetDeviceCount(&num_gpus));
  if (num_gpus < 1) {
    printf("no CUDA capable devices were detected\n");
    return 1;
  }
  fprintf(stderr, "number of host CPUs: %d\n", omp_get_num_procs());

  // part 1: each thread has a part of the array
  omp_set_num_threads(NSTREAM);
  int *a = (int *)malloc(N * sizeof(int));
  for (int i = 0; i < N; i++) a[i] = i;
#pragma omp parallel
  {
    unsigned int cpu_thread_id = omp_get_thread_num(), num_cpu_threads = omp_get_num_threads();
    int gpu_id = -1;
    CHECK(cudaSetDevice(cpu_thread_id % num_gpus));
    CHECK(cudaGetDevice(&gpu_id));
    int part = (N + num_cpu_threads - 1) / num_cpu_threads, first = cpu_thread_id * part;
    int count = first + part <= N ? part : N - first;
    int *d_a = 0;
    CHECK(cudaMalloc((void **)&d_a, count * sizeof(int)));
    CHECK(cudaMemcpy(d_a, a + first, count * sizeof(int), cudaMemcpyHostToDevice));
    kernelAddConstant<<<(count + 127) / 128, 128>>>(d_a, 3, count);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(a + first, d_a, count * sizeof(int), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(d_a));
  }
  for (int i = 0; i < N; i++) failures += a[i] != i + 3;
  printf("array in parts: %d wrong\n", failures);

  // part 2: dispatch to streams
  cudaStream_t streams[NSTREAM];
  double *d_out[NSTREAM], out[NSTREAM][64];
  for (int i = 0; i < NSTREAM; i++) {
    CHECK(cudaStreamCreate(&streams[i]));
    CHECK(cudaMalloc(&d_out[i], 64 * sizeof(double)));
  }
#pragma omp parallel num_threads(NSTREAM)
  {
    int i = omp_get_thread_num();
    kernel_1<<<1, 64, 0, streams[i]>>>(d_out[i], i);
    kernel_2<<<1, 64, 0, streams[i]>>>(d_out[i]);
    kernel_3<<<1, 64, 0, streams[i]>>>(d_out[i]);
    CHECK(cudaMemcpyAsync(out[i], d_out[i], sizeof(out[i]), cudaMemcpyDeviceToHost, streams[i]));
    CHECK(cudaStreamSynchronize(streams[i]));
  }
  for (int i = 0; i < NSTREAM; i++) {
    for (int t = 0; t < 64; t++) failures += out[i][t] != 2.0 * 199 * i + 63 - t;
    printf("stream %d: %.1f\n", i, out[i][0]);
  }

  // part 3: the CPU's threads and the GPU share the work, until there is none left
  const int limit = 6000, chunk = 500;
  int next = 0, total = 0, expected = 0;
#pragma omp parallel reduction(+ : total)
  {
    int *d_count = NULL, own = 0;
    const bool uses_gpu = omp_get_thread_num() < 2;
    if (uses_gpu) CHECK(cudaMalloc(&d_count, sizeof(int)));
    for (;;) {
      int from;
#pragma omp atomic capture
      {
        from = next;
        next += chunk;
      }
      if (from >= limit) break;
      if (uses_gpu) {
        int count = 0;
        CHECK(cudaMemcpy(d_count, &count, sizeof(int), cudaMemcpyHostToDevice));
        count_primes<<<(chunk + 127) / 128, 128>>>(from, from + chunk, d_count);
        CHECK(cudaMemcpy(&count, d_count, sizeof(int), cudaMemcpyDeviceToHost));
        own += count;
      } else {
        for (int n = from; n < from + chunk; n++) own += is_prime(n);
      }
    }
    if (uses_gpu) CHECK(cudaFree(d_count));
    total += own;
  }
#pragma omp parallel for schedule(dynamic, 100) reduction(+ : expected)
  for (int n = 0; n < limit; n++) expected += is_prime(n);
  printf("primes below %d: %d\n", limit, total);
  failures += total != expected;

  for (int i = 0; i < NSTREAM; i++) {
    CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaFree(d_out[i]));
  }
  free(a);
  printf(failures ? "FAILED\n" : "PASSED\n");
  return failures ? 1 : 0;
}
