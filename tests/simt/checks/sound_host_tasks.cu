// check: sound
// near: uninitialized
// what: tasks started with std::async have streams, events and memory of their own and launch at once

#include <cstdio>
#include <cstdlib>
#include <future>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void scan(const int* in, int* out, int n) {
  extern __shared__ int line[];
  int t = threadIdx.x;
  line[t] = t < n ? in[t] : 0;
  __syncthreads();
  for (int step = 1; step < blockDim.x; step *= 2) {
    int left = t >= step ? line[t - step] : 0;
    __syncthreads();
    line[t] += left;
    __syncthreads();
  }
  if (t < n) out[t] = line[t];
}

int task(int n) {
  std::vector<int> host(n, 2);
  int *in, *out;
  cudaStream_t stream;
  cudaEvent_t done;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&done));
  CHECK(cudaMalloc(&in, n * sizeof(int)));
  CHECK(cudaMalloc(&out, n * sizeof(int)));
  CHECK(cudaMemcpyAsync(in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
  for (int pass = 0; pass < 8; pass++) scan<<<1, 64, 64 * sizeof(int), stream>>>(in, out, n);
  CHECK(cudaEventRecord(done, stream));
  CHECK(cudaEventSynchronize(done));
  CHECK(cudaMemcpyAsync(host.data(), out, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  return host[n - 1];
}

int main() {
  std::vector<std::future<int>> tasks;
  for (int n = 40; n < 46; n++) tasks.push_back(std::async(std::launch::async, task, n));
  for (auto& each : tasks) printf("%d\n", each.get());
}
