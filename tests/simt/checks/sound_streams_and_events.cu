// check: sound
// near: leak
// what: two streams, an event between them, asynchronous copies and a timed event; everything is destroyed again

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void add(int* x, int n, int what) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += what;
}

int main() {
  const int n = 256;
  int *host, *d_x;
  cudaStream_t first, second;
  cudaEvent_t begin, done;
  CHECK(cudaMallocHost(&host, n * sizeof(int)));
  CHECK(cudaMalloc(&d_x, n * sizeof(int)));
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&done));
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaEventRecord(begin, first));
  CHECK(cudaMemcpyAsync(d_x, host, n * sizeof(int), cudaMemcpyHostToDevice, first));
  add<<<2, 128, 0, first>>>(d_x, n, 10);
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(done, first));
  CHECK(cudaStreamWaitEvent(second, done, 0));
  add<<<4, 64, 0, second>>>(d_x, n, 100);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpyAsync(host, d_x, n * sizeof(int), cudaMemcpyDeviceToHost, second));
  while (cudaStreamQuery(second) == cudaErrorNotReady) {}
  float milliseconds;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, done));
  printf("%d %d %s\n", host[0], host[n - 1], milliseconds >= 0 ? "timed" : "not timed");
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
  CHECK(cudaFree(d_x));
  CHECK(cudaFreeHost(host));
  return 0;
}
