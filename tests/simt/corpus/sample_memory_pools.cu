// title: Stream-ordered allocation from the default pool and from a pool of its own
// features: memory_pools, streams, events, classes
// args: 6

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_OK(call)                                                                    \
  do {                                                                                   \
    cudaError_t result = (call);                                                         \
    if (result != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s -> %s\n", #call, cudaGetErrorString(result));             \
      std::abort();                                                                      \
    }                                                                                    \
  } while (0)

// A temporary array that lives as long as its place in the stream's order says.
template <class T>
class StreamArray {
 public:
  StreamArray(size_t n, cudaStream_t stream, cudaMemPool_t pool = nullptr) : stream_(stream) {
    if (pool)
      CUDA_OK(cudaMallocFromPoolAsync((void**)&data_, n * sizeof(T), pool, stream));
    else
      CUDA_OK(cudaMallocAsync((void**)&data_, n * sizeof(T), stream));
  }
  ~StreamArray() { CUDA_OK(cudaFreeAsync(data_, stream_)); }
  StreamArray(const StreamArray&) = delete;
  operator T*() { return data_; }

 private:
  T* data_;
  cudaStream_t stream_;
};

__global__ void generate(unsigned* x, int n, unsigned seed) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    unsigned v = seed + i * 0x9e3779b9u;
    v ^= v >> 16, v *= 0x85ebca6bu, v ^= v >> 13;
    x[i] = v;
  }
}

__global__ void histogram16(const unsigned* x, int n, unsigned* bins) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[x[i] >> 28], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

void run(int n, unsigned seed, cudaStream_t stream, cudaMemPool_t pool, unsigned* host) {
  StreamArray<unsigned> x(n, stream, pool), bins(16, stream, pool);
  CUDA_OK(cudaMemsetAsync(bins, 0, 16 * sizeof(unsigned), stream));
  generate<<<(n + 255) / 256, 256, 0, stream>>>(x, n, seed);
  histogram16<<<4, 128, 0, stream>>>(x, n, bins);
  CUDA_OK(cudaGetLastError());
  CUDA_OK(cudaMemcpyAsync(host, bins, 16 * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 6;
  int device = 0, supported = 0;
  CUDA_OK(cudaGetDevice(&device));
  CUDA_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device));
  if (!supported) {
    std::puts("This device has no memory pools.");
    return 1;
  }
  cudaMemPoolProps props;
  std::memset(&props, 0, sizeof props);
  props.allocType = cudaMemAllocationTypePinned;
  props.handleTypes = cudaMemHandleTypeNone;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  cudaMemPool_t own, standard;
  CUDA_OK(cudaMemPoolCreate(&own, &props));
  CUDA_OK(cudaDeviceGetDefaultMemPool(&standard, device));
  unsigned long long keep = ~0ull, threshold = 0;
  CUDA_OK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &keep));
  CUDA_OK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrReleaseThreshold, &threshold));

  cudaStream_t streams[2];
  for (auto& s : streams) CUDA_OK(cudaStreamCreate(&s));
  unsigned* host;
  CUDA_OK(cudaMallocHost((void**)&host, rounds * 16 * sizeof(unsigned)));
  for (int r = 0; r < rounds; r++) run(1000 + 777 * r, 5u * r, streams[r % 2], r % 3 ? own : nullptr, host + 16 * r);
  for (auto& s : streams) CUDA_OK(cudaStreamSynchronize(s));

  int wrong = threshold != keep;
  unsigned check = 0;
  for (int r = 0; r < rounds; r++) {
    std::vector<unsigned> want(16);
    for (int i = 0; i < 1000 + 777 * r; i++) {
      unsigned v = 5u * r + i * 0x9e3779b9u;
      v ^= v >> 16, v *= 0x85ebca6bu, v ^= v >> 13;
      want[v >> 28]++;
    }
    for (int b = 0; b < 16; b++) {
      wrong += want[b] != host[16 * r + b];
      check = check * 31 + host[16 * r + b];
    }
  }
  unsigned long long used = 1;
  CUDA_OK(cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used));
  std::printf("%d rounds, checksum %u, %llu bytes of the pool still in use\n", rounds, check, used);
  wrong += used != 0;
  CUDA_OK(cudaMemPoolTrimTo(own, 0));
  CUDA_OK(cudaMemPoolTrimTo(standard, 0));
  CUDA_OK(cudaFreeHost(host));
  for (auto& s : streams) CUDA_OK(cudaStreamDestroy(s));
  CUDA_OK(cudaMemPoolDestroy(own));
  std::puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
