// title: Multi-pass reduction whose scratch memory comes from the stream's pool
// features: memory_pools, streams, templates
// args: 30000

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_TRY(call)                                                                  \
  do {                                                                                  \
    cudaError_t const status = (call);                                                  \
    if (cudaSuccess != status) {                                                        \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(status));      \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (0)

struct Sum {
  __device__ long long operator()(long long a, long long b) const { return a + b; }
  static __host__ __device__ long long neutral() { return 0; }
};
struct Max {
  __device__ long long operator()(long long a, long long b) const { return a > b ? a : b; }
  static __host__ __device__ long long neutral() { return -(1LL << 62); }
};

template <int THREADS, class Op, class In>
__global__ void pass(const In* in, int n, long long* out, Op op) {
  __shared__ long long s[THREADS];
  long long v = Op::neutral();
  for (int i = blockIdx.x * THREADS * 4 + threadIdx.x, k = 0; k < 4; k++, i += THREADS)
    if (i < n) v = op(v, in[i]);
  s[threadIdx.x] = v;
  __syncthreads();
  for (int d = THREADS / 2; d; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] = op(s[threadIdx.x], s[threadIdx.x + d]);
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}

// Each pass gets memory for its results and gives that of the pass before back, all in the stream's order.
template <class Op>
long long reduce(const int* data, int n, Op op, cudaStream_t stream) {
  constexpr int kThreads = 64, kTile = kThreads * 4;
  int blocks = (n + kTile - 1) / kTile;
  long long* current = nullptr;
  CUDA_TRY(cudaMallocAsync(&current, blocks * sizeof(long long), stream));
  pass<kThreads><<<blocks, kThreads, 0, stream>>>(data, n, current, op);
  CUDA_TRY(cudaGetLastError());
  while (blocks > 1) {
    const int count = blocks;
    blocks = (count + kTile - 1) / kTile;
    long long* next = nullptr;
    CUDA_TRY(cudaMallocAsync(&next, blocks * sizeof(long long), stream));
    pass<kThreads><<<blocks, kThreads, 0, stream>>>(current, count, next, op);
    CUDA_TRY(cudaGetLastError());
    CUDA_TRY(cudaFreeAsync(current, stream));
    current = next;
  }
  long long result = 0;
  CUDA_TRY(cudaMemcpyAsync(&result, current, sizeof result, cudaMemcpyDeviceToHost, stream));
  CUDA_TRY(cudaFreeAsync(current, stream));
  CUDA_TRY(cudaStreamSynchronize(stream));
  return result;
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 30000;
  std::vector<int> host(n);
  unsigned s = 4;
  for (int& v : host) v = (int)((s = s * 22695477u + 1u) >> 8) % 100000 - 50000;
  cudaMemPool_t pool;
  CUDA_TRY(cudaDeviceGetMemPool(&pool, 0));
  unsigned long long threshold = 1 << 20;
  CUDA_TRY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  cudaStream_t stream;
  CUDA_TRY(cudaStreamCreate(&stream));
  int* data;
  CUDA_TRY(cudaMallocAsync(&data, n * sizeof(int), stream));
  CUDA_TRY(cudaMemcpyAsync(data, host.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
  bool ok = true;
  for (int m : {n, n / 3, 1000, 1}) {
    long long sum = 0, top = Max::neutral();
    for (int i = 0; i < m; i++) {
      sum += host[i];
      top = host[i] > top ? host[i] : top;
    }
    long long gotSum = reduce(data, m, Sum(), stream), gotTop = reduce(data, m, Max(), stream);
    std::printf("%6d numbers: sum %lld, largest %lld\n", m, gotSum, gotTop);
    ok = ok && gotSum == sum && gotTop == top;
  }
  CUDA_TRY(cudaFreeAsync(data, stream));
  CUDA_TRY(cudaStreamSynchronize(stream));
  CUDA_TRY(cudaStreamDestroy(stream));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
