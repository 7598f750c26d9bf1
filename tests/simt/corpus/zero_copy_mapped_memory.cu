// title: sums with zero-copy memory of the host: mapped, registered, and as flags that the host sees
// features: zero_copy, pinned_memory, unified_addressing, memory_fences

#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>

#define CHECK(call)                                                                        \
  {                                                                                        \
    const cudaError_t error = call;                                                        \
    if (error != cudaSuccess) {                                                            \
      fprintf(stderr, "Error: %s:%d, ", __FILE__, __LINE__);                               \
      fprintf(stderr, "code: %d, reason: %s\n", error, cudaGetErrorString(error));         \
      exit(1);                                                                             \
    }                                                                                      \
  }

#define MEMORY_ALIGNMENT 4096
#define ALIGN_UP(x, size) (((size_t)x + (size - 1)) & (~(size - 1)))

void checkResult(float *hostRef, float *gpuRef, const int N, int *failures) {
  double epsilon = 1.0E-6;
  for (int i = 0; i < N; i++)
    if (fabs(hostRef[i] - gpuRef[i]) > epsilon) {
      printf("Arrays do not match: host %5.2f gpu %5.2f at %d\n", hostRef[i], gpuRef[i], i);
      ++*failures;
      return;
    }
}

__global__ void sumArrays(float *A, float *B, float *C, const int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) C[i] = A[i] + B[i];
}

__global__ void dot(const float *a, const float *b, float *partial_c, int n) {
  __shared__ float cache[128];
  float temp = 0;
  for (int tid = threadIdx.x + blockIdx.x * blockDim.x; tid < n; tid += blockDim.x * gridDim.x) temp += a[tid] * b[tid];
  cache[threadIdx.x] = temp;
  __syncthreads();
  for (int i = blockDim.x / 2; i != 0; i /= 2) {
    if (threadIdx.x < i) cache[threadIdx.x] += cache[threadIdx.x + i];
    __syncthreads();
  }
  if (threadIdx.x == 0) partial_c[blockIdx.x] = cache[0];
}

struct Progress {
  volatile int steps;
  volatile int done;
};

__global__ void report_progress(Progress *p, int steps) {
  for (int i = 1; i <= steps; i++) {
    p->steps = i;
    __threadfence_system();
  }
  p->done = 1;
}

int main(int argc, char **argv) {
  int failures = 0, canMap = 0;
  CHECK(cudaSetDeviceFlags(cudaDeviceMapHost));
  CHECK(cudaDeviceGetAttribute(&canMap, cudaDevAttrCanMapHostMemory, 0));
  if (!canMap) {
    printf("Device 0 does not support mapping CPU host memory!\nFAILED\n");
    return 1;
  }
  int ipower = argc > 1 ? atoi(argv[1]) : 12;
  int nElem = 1 << ipower;
  size_t nBytes = nElem * sizeof(float);
  float *h_A, *h_B, *d_A, *d_B, *d_C;
  float *hostRef = (float *)malloc(nBytes), *gpuRef = (float *)malloc(nBytes);
  memset(gpuRef, 0, nBytes);

  // part 1: mapped memory, with the device's pointers
  CHECK(cudaHostAlloc((void **)&h_A, nBytes, cudaHostAllocMapped));
  CHECK(cudaHostAlloc((void **)&h_B, nBytes, cudaHostAllocMapped | cudaHostAllocWriteCombined));
  CHECK(cudaMalloc((float **)&d_C, nBytes));
  for (int i = 0; i < nElem; i++) {
    h_A[i] = (float)(i & 0xFF) / 8.0f;
    h_B[i] = (float)((i * 3) & 0x3F);
    hostRef[i] = (float)(i & 0xFF) / 8.0f + (float)((i * 3) & 0x3F);
  }
  CHECK(cudaHostGetDevicePointer((void **)&d_A, (void *)h_A, 0));
  CHECK(cudaHostGetDevicePointer((void **)&d_B, (void *)h_B, 0));
  sumArrays<<<(nElem + 511) / 512, 512>>>(d_A, d_B, d_C, nElem);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(gpuRef, d_C, nBytes, cudaMemcpyDeviceToHost));
  checkResult(hostRef, gpuRef, nElem, &failures);
  printf("mapped: %.3f\n", gpuRef[nElem - 1]);

  // part 2: unified addressing: the host's pointers in the kernel, and results in the host's memory
  float *h_partial;
  const int blocks = 6;
  CHECK(cudaHostAlloc((void **)&h_partial, blocks * sizeof(float), cudaHostAllocMapped));
  dot<<<blocks, 128>>>(h_A, h_B, h_partial, nElem);
  CHECK(cudaDeviceSynchronize());
  double expected = 0, result = 0;
  for (int i = 0; i < nElem; i++) expected += (double)h_A[i] * h_B[i];
  for (int b = 0; b < blocks; b++) result += h_partial[b];
  printf("dot product: %.2f\n", result);
  failures += fabs(result - expected) > 1e-2;

  // part 3: memory that the program has already, registered
  unsigned char *a_UA = (unsigned char *)malloc(nBytes + MEMORY_ALIGNMENT);
  float *aligned = (float *)ALIGN_UP(a_UA, MEMORY_ALIGNMENT), *d_aligned;
  for (int i = 0; i < nElem; i++) aligned[i] = 1.0f;
  CHECK(cudaHostRegister(aligned, nBytes, cudaHostRegisterMapped));
  CHECK(cudaHostGetDevicePointer((void **)&d_aligned, (void *)aligned, 0));
  sumArrays<<<(nElem + 255) / 256, 256>>>(d_aligned, d_A, d_aligned, nElem);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < nElem; i++) failures += aligned[i] != 1.0f + h_A[i];
  printf("registered: %.3f\n", aligned[nElem - 1]);
  CHECK(cudaHostUnregister(aligned));

  // part 4: kinds of pointers
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, d_C));
  failures += attributes.type != cudaMemoryTypeDevice;
  CHECK(cudaPointerGetAttributes(&attributes, h_A));
  failures += attributes.type != cudaMemoryTypeHost;
  unsigned int flags = 0;
  CHECK(cudaHostGetFlags(&flags, h_B));
  failures += !(flags & cudaHostAllocMapped);

  // part 5: what a kernel tells the host
  Progress *progress;
  CHECK(cudaHostAlloc((void **)&progress, sizeof(Progress), cudaHostAllocMapped));
  progress->steps = progress->done = 0;
  report_progress<<<1, 1>>>(progress, 25);
  while (!progress->done) {
    cudaError_t status = cudaStreamQuery(0);
    if (status != cudaSuccess && status != cudaErrorNotReady) CHECK(status);
  }
  CHECK(cudaDeviceSynchronize());
  printf("progress: %d\n", progress->steps);
  failures += progress->steps != 25;

  CHECK(cudaFreeHost(progress));
  CHECK(cudaFreeHost(h_partial));
  CHECK(cudaFreeHost(h_A));
  CHECK(cudaFreeHost(h_B));
  CHECK(cudaFree(d_C));
  free(a_UA);
  free(hostRef);
  free(gpuRef);
  printf(failures ? "FAILED\n" : "PASSED\n");
  return failures ? 1 : 0;
}
