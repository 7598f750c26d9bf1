// title: One host thread per device sums its part of an array
// features: multi_device, host_threads, cub, pinned_memory

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include <cub/cub.cuh>
#include <cuda_runtime.h>

using namespace std;

static void ok(cudaError_t e) {
  if (e != cudaSuccess) {
    cerr << cudaGetErrorString(e) << '\n';
    exit(1);
  }
}

constexpr int THREADS = 256;

__global__ void sumKernel(const int32_t* x, int n, int64_t* sums) {
  typedef cub::BlockReduce<int64_t, THREADS, cub::BLOCK_REDUCE_RAKING> BlockReduce;
  __shared__ typename BlockReduce::TempStorage temp;
  int64_t v = 0;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) v += x[i];
  int64_t total = BlockReduce(temp).Sum(v);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

void work(int device, const int32_t* part, int n, int64_t& result) {
  const int blocks = 8;
  ok(cudaSetDevice(device));
  int32_t* x;
  int64_t *sums, *host;
  ok(cudaMalloc(&x, n * sizeof *x));
  ok(cudaMalloc(&sums, blocks * sizeof *sums));
  ok(cudaMallocHost(&host, blocks * sizeof *host));
  ok(cudaMemcpy(x, part, n * sizeof *x, cudaMemcpyHostToDevice));
  sumKernel<<<blocks, THREADS>>>(x, n, sums);
  ok(cudaGetLastError());
  ok(cudaMemcpy(host, sums, blocks * sizeof *host, cudaMemcpyDeviceToHost));
  result = 0;
  for (int b = 0; b < blocks; b++) result += host[b];
  ok(cudaFree(x));
  ok(cudaFree(sums));
  ok(cudaFreeHost(host));
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 50000;
  int devices;
  ok(cudaGetDeviceCount(&devices));
  cerr << devices << " device(s)\n";
  vector<int32_t> x(n);
  uint32_t state = 1;
  for (auto& v : x) v = (int32_t)((state = state * 69069u + 5u) >> 12) - 400000;
  vector<int64_t> parts(devices);
  vector<thread> threads;
  for (int d = 0; d < devices; d++) {
    int first = (int)((int64_t)n * d / devices), last = (int)((int64_t)n * (d + 1) / devices);
    threads.emplace_back(work, d, x.data() + first, last - first, ref(parts[d]));
  }
  for (auto& t : threads) t.join();
  int64_t got = 0, want = 0;
  for (auto p : parts) got += p;
  for (auto v : x) want += v;
  cout << "sum of " << n << " numbers: " << got << '\n' << (got == want ? "PASSED" : "FAILED") << endl;
  return got != want;
}
