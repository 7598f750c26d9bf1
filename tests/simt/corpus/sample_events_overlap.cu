// title: Copies and kernels in pieces over several streams, timed with events
// features: streams, events, pinned_memory, async_copies
// args: 4

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <chrono>

inline cudaError_t checkCuda(cudaError_t result) {
  if (result != cudaSuccess) {
    fprintf(stderr, "CUDA Runtime Error: %s\n", cudaGetErrorString(result));
    exit(1);
  }
  return result;
}

// sin^2 + cos^2 + a: the result is known and every element costs something
__global__ void kernel(float* a, int offset) {
  int i = offset + threadIdx.x + blockIdx.x * blockDim.x;
  float x = (float)i;
  float s = sinf(x), c = cosf(x);
  a[i] = a[i] + sqrtf(s * s + c * c);
}

static float maxError(const float* a, int n) {
  float worst = 0;
  for (int i = 0; i < n; i++) {
    float e = fabsf(a[i] - (1.0f + i % 3));
    if (e > worst) worst = e;
  }
  return worst;
}

int main(int argc, char** argv) {
  const int blockSize = 128, nStreams = argc > 1 ? atoi(argv[1]) : 4;
  const int n = 2 * blockSize * nStreams * 8, streamSize = n / nStreams;
  const size_t streamBytes = streamSize * sizeof(float), bytes = n * sizeof(float);
  float *a, *d_a;
  checkCuda(cudaMallocHost((void**)&a, bytes));
  checkCuda(cudaMalloc((void**)&d_a, bytes));
  cudaEvent_t startEvent, stopEvent;
  cudaStream_t* stream = (cudaStream_t*)malloc(nStreams * sizeof(cudaStream_t));
  checkCuda(cudaEventCreate(&startEvent));
  checkCuda(cudaEventCreate(&stopEvent));
  for (int i = 0; i < nStreams; i++) checkCuda(cudaStreamCreate(&stream[i]));

  bool ok = true;
  for (int version = 0; version < 3; version++) {
    for (int i = 0; i < n; i++) a[i] = (float)(i % 3);
    auto t0 = std::chrono::steady_clock::now();
    checkCuda(cudaEventRecord(startEvent, 0));
    if (version == 0) {  // one after the other
      checkCuda(cudaMemcpy(d_a, a, bytes, cudaMemcpyHostToDevice));
      kernel<<<n / blockSize, blockSize>>>(d_a, 0);
      checkCuda(cudaMemcpy(a, d_a, bytes, cudaMemcpyDeviceToHost));
    } else if (version == 1) {  // depth first: copy, kernel, copy in each stream
      for (int i = 0; i < nStreams; i++) {
        int offset = i * streamSize;
        checkCuda(cudaMemcpyAsync(&d_a[offset], &a[offset], streamBytes, cudaMemcpyHostToDevice, stream[i]));
        kernel<<<streamSize / blockSize, blockSize, 0, stream[i]>>>(d_a, offset);
        checkCuda(cudaMemcpyAsync(&a[offset], &d_a[offset], streamBytes, cudaMemcpyDeviceToHost, stream[i]));
      }
    } else {  // breadth first
      for (int i = 0; i < nStreams; i++)
        checkCuda(cudaMemcpyAsync(&d_a[i * streamSize], &a[i * streamSize], streamBytes, cudaMemcpyHostToDevice, stream[i]));
      for (int i = 0; i < nStreams; i++) kernel<<<streamSize / blockSize, blockSize, 0, stream[i]>>>(d_a, i * streamSize);
      for (int i = 0; i < nStreams; i++)
        checkCuda(cudaMemcpyAsync(&a[i * streamSize], &d_a[i * streamSize], streamBytes, cudaMemcpyDeviceToHost, stream[i]));
    }
    checkCuda(cudaGetLastError());
    checkCuda(cudaEventRecord(stopEvent, 0));
    checkCuda(cudaEventSynchronize(stopEvent));
    checkCuda(cudaDeviceSynchronize());
    float ms = -1;
    checkCuda(cudaEventElapsedTime(&ms, startEvent, stopEvent));
    double wall = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t0).count();
    fprintf(stderr, "version %d: %.3f ms by events, %.3f ms by the clock\n", version, ms, wall);
    float e = maxError(a, n);
    printf("version %d: %d elements, error below 1e-6: %s\n", version, n, e < 1e-6f ? "yes" : "no");
    ok = ok && e < 1e-6f && ms >= 0;
  }
  checkCuda(cudaEventDestroy(startEvent));
  checkCuda(cudaEventDestroy(stopEvent));
  for (int i = 0; i < nStreams; i++) checkCuda(cudaStreamDestroy(stream[i]));
  free(stream);
  checkCuda(cudaFree(d_a));
  checkCuda(cudaFreeHost(a));
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
