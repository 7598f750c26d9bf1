// title: chunks of a vector in several streams, depth first and breadth first, with events between streams
// features: streams, events, pinned_memory, stream_priorities

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define NSTREAM 4
#define BDIM 128
#define NREPEAT 3

inline cudaError_t checkCuda(cudaError_t result) {
  if (result != cudaSuccess) {
    fprintf(stderr, "CUDA Runtime Error: %s\n", cudaGetErrorString(result));
    exit(1);
  }
  return result;
}

__global__ void sumArrays(const float *A, const float *B, float *C, const int N) {
  int idx = blockIdx.x * blockDim.x + threadIdx.x;
  if (idx < N)
    for (int i = 0; i < NREPEAT; ++i) C[idx] = A[idx] + B[idx] + i;
}

__global__ void scale(float *data, int n, float factor) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) data[i] *= factor;
}

__global__ void fill(float *data, int n, float value) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = value;
}

static int compare(const char *name, const float *got, const std::vector<double> &expected) {
  int wrong = 0;
  double sum = 0;
  for (size_t i = 0; i < expected.size(); i++) {
    wrong += got[i] != expected[i];
    sum += got[i];
  }
  printf("%-28s sum %.1f, %d wrong\n", name, sum, wrong);
  return wrong;
}

int main(int argc, char **argv) {
  const int nElem = 1 << 13, iElem = nElem / NSTREAM;
  const size_t nBytes = nElem * sizeof(float), iBytes = iElem * sizeof(float);
  float *h_A, *h_B, *gpuRef, *d_A, *d_B, *d_C;
  checkCuda(cudaHostAlloc((void **)&h_A, nBytes, cudaHostAllocDefault));
  checkCuda(cudaHostAlloc((void **)&h_B, nBytes, cudaHostAllocDefault));
  checkCuda(cudaHostAlloc((void **)&gpuRef, nBytes, cudaHostAllocDefault));
  std::vector<double> expected(nElem);
  for (int i = 0; i < nElem; i++) {
    h_A[i] = (float)(i % 71);
    h_B[i] = (float)(i % 13) * 0.5f;
    expected[i] = (i % 71) + (i % 13) * 0.5 + NREPEAT - 1;
  }
  checkCuda(cudaMalloc((float **)&d_A, nBytes));
  checkCuda(cudaMalloc((float **)&d_B, nBytes));
  checkCuda(cudaMalloc((float **)&d_C, nBytes));

  cudaEvent_t start, stop;
  checkCuda(cudaEventCreate(&start));
  checkCuda(cudaEventCreate(&stop));
  cudaStream_t stream[NSTREAM];
  for (int i = 0; i < NSTREAM; ++i) checkCuda(cudaStreamCreate(&stream[i]));
  dim3 block(BDIM), grid((iElem + block.x - 1) / block.x);
  int failures = 0;

  memset(gpuRef, 0, nBytes);
  checkCuda(cudaEventRecord(start, 0));
  for (int i = 0; i < NSTREAM; ++i) {  // depth first
    int ioffset = i * iElem;
    checkCuda(cudaMemcpyAsync(&d_A[ioffset], &h_A[ioffset], iBytes, cudaMemcpyHostToDevice, stream[i]));
    checkCuda(cudaMemcpyAsync(&d_B[ioffset], &h_B[ioffset], iBytes, cudaMemcpyHostToDevice, stream[i]));
    sumArrays<<<grid, block, 0, stream[i]>>>(&d_A[ioffset], &d_B[ioffset], &d_C[ioffset], iElem);
    checkCuda(cudaMemcpyAsync(&gpuRef[ioffset], &d_C[ioffset], iBytes, cudaMemcpyDeviceToHost, stream[i]));
  }
  checkCuda(cudaEventRecord(stop, 0));
  checkCuda(cudaEventSynchronize(stop));
  float execution_time = -1;
  checkCuda(cudaEventElapsedTime(&execution_time, start, stop));
  fprintf(stderr, "with %d streams: %f ms\n", NSTREAM, execution_time);
  failures += compare("depth first", gpuRef, expected) || execution_time < 0;

  memset(gpuRef, 0, nBytes);
  for (int i = 0; i < NSTREAM; ++i) {  // breadth first
    checkCuda(cudaMemcpyAsync(d_A + i * iElem, h_A + i * iElem, iBytes, cudaMemcpyHostToDevice, stream[i]));
    checkCuda(cudaMemcpyAsync(d_B + i * iElem, h_B + i * iElem, iBytes, cudaMemcpyHostToDevice, stream[i]));
  }
  for (int i = 0; i < NSTREAM; ++i)
    sumArrays<<<grid, block, 0, stream[i]>>>(d_A + i * iElem, d_B + i * iElem, d_C + i * iElem, iElem);
  for (int i = 0; i < NSTREAM; ++i)
    checkCuda(cudaMemcpyAsync(gpuRef + i * iElem, d_C + i * iElem, iBytes, cudaMemcpyDeviceToHost, stream[i]));
  for (int i = 0; i < NSTREAM; ++i) checkCuda(cudaStreamSynchronize(stream[i]));
  failures += compare("breadth first", gpuRef, expected);

  // The last stream waits for the events of the others; a non-blocking stream takes no notice of the default stream.
  cudaEvent_t kernelEvent[NSTREAM];
  cudaStream_t last;
  int least, greatest;
  checkCuda(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  checkCuda(cudaStreamCreateWithPriority(&last, cudaStreamNonBlocking, greatest));
  for (int i = 0; i < NSTREAM; i++) {
    checkCuda(cudaEventCreateWithFlags(&kernelEvent[i], cudaEventDisableTiming));
    scale<<<2, 64, 0, stream[i]>>>(d_C + i * iElem, iElem, 2.0f * (i + 1));
    checkCuda(cudaEventRecord(kernelEvent[i], stream[i]));
    checkCuda(cudaStreamWaitEvent(last, kernelEvent[i], 0));
  }
  scale<<<4, 64, 0, last>>>(d_C, nElem, 0.5f);
  checkCuda(cudaMemcpyAsync(gpuRef, d_C, nBytes, cudaMemcpyDeviceToHost, last));
  checkCuda(cudaStreamSynchronize(last));
  for (int i = 0; i < nElem; i++) expected[i] *= i / iElem + 1;
  failures += compare("joined by events", gpuRef, expected);
  int priority = 1;
  unsigned int flags = 0;
  checkCuda(cudaStreamGetPriority(last, &priority));
  checkCuda(cudaStreamGetFlags(last, &flags));
  failures += priority != greatest || flags != cudaStreamNonBlocking || least < greatest;

  // The default stream is ordered with the blocking streams.
  fill<<<1, 256, 0, stream[2]>>>(d_A, nElem, 3.0f);
  scale<<<4, 64>>>(d_A, nElem, 5.0f);
  sumArrays<<<nElem / BDIM, BDIM, 0, stream[1]>>>(d_A, d_A, d_C, nElem);
  checkCuda(cudaMemcpy(gpuRef, d_C, nBytes, cudaMemcpyDeviceToHost));
  for (auto &e : expected) e = 32;
  failures += compare("through the default stream", gpuRef, expected);
  checkCuda(cudaDeviceSynchronize());
  for (int i = 0; i < NSTREAM; i++)
    if (cudaEventQuery(kernelEvent[i]) != cudaSuccess || cudaStreamQuery(stream[i]) != cudaSuccess) failures++;

  for (int i = 0; i < NSTREAM; ++i) {
    checkCuda(cudaStreamDestroy(stream[i]));
    checkCuda(cudaEventDestroy(kernelEvent[i]));
  }
  checkCuda(cudaStreamDestroy(last));
  checkCuda(cudaEventDestroy(start));
  checkCuda(cudaEventDestroy(stop));
  checkCuda(cudaFree(d_A));
  checkCuda(cudaFree(d_B));
  checkCuda(cudaFree(d_C));
  checkCuda(cudaFreeHost(h_A));
  checkCuda(cudaFreeHost(h_B));
  checkCuda(cudaFreeHost(gpuRef));
  puts(failures ? "FAILED" : "PASSED");
  return failures ? 1 : 0;
}
