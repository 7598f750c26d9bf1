// title: An urgent stream beside a long one: priorities, event waits, a host function at the end
// features: stream_priorities, events, callbacks, streams

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define ASSERT_CUDA(x)                                                              \
  do {                                                                              \
    cudaError_t st_ = (x);                                                          \
    if (st_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorName(st_)); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

// Collatz steps: the work of a thread depends on its number.
__global__ void collatz(int first, int n, int* steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long v = first + i;
  int k = 0;
  while (v != 1) {
    v = v % 2 ? 3 * v + 1 : v / 2;
    k++;
  }
  steps[i] = k;
}

__global__ void peak(const int* steps, int n, int* best) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = i < n ? steps[i] : 0;
  v = __reduce_max_sync(0xffffffffu, (unsigned)v);
  if (threadIdx.x % 32 == 0) atomicMax(best, v);
}

struct Report {
  const int* best;
  int calls, value;
};

static void CUDART_CB finished(void* p) {
  auto* r = static_cast<Report*>(p);
  r->calls++;
  r->value = *r->best;
}

int main() {
  const int background = 8192, urgent = 512;
  int least, greatest;
  ASSERT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t slow, fast;
  ASSERT_CUDA(cudaStreamCreateWithPriority(&slow, cudaStreamNonBlocking, least));
  ASSERT_CUDA(cudaStreamCreateWithPriority(&fast, cudaStreamNonBlocking, greatest));
  int given = 1;
  ASSERT_CUDA(cudaStreamGetPriority(fast, &given));
  cudaEvent_t begin[2], end[2];
  for (auto* e : {&begin[0], &begin[1], &end[0], &end[1]}) ASSERT_CUDA(cudaEventCreate(e));
  int *steps[2], *best[2], *pinned;
  for (int k = 0; k < 2; k++) {
    ASSERT_CUDA(cudaMalloc(&steps[k], (k ? urgent : background) * sizeof(int)));
    ASSERT_CUDA(cudaMalloc(&best[k], sizeof(int)));
  }
  ASSERT_CUDA(cudaMallocHost(&pinned, 2 * sizeof(int)));
  Report reports[2] = {{pinned, 0, 0}, {pinned + 1, 0, 0}};
  for (int k = 0; k < 2; k++) {
    cudaStream_t s = k ? fast : slow;
    const int n = k ? urgent : background;
    ASSERT_CUDA(cudaEventRecord(begin[k], s));
    ASSERT_CUDA(cudaMemsetAsync(best[k], 0, sizeof(int), s));
    collatz<<<(n + 127) / 128, 128, 0, s>>>(k ? 100000 : 1, n, steps[k]);
    peak<<<(n + 127) / 128, 128, 0, s>>>(steps[k], n, best[k]);
    ASSERT_CUDA(cudaGetLastError());
    ASSERT_CUDA(cudaMemcpyAsync(pinned + k, best[k], sizeof(int), cudaMemcpyDeviceToHost, s));
    ASSERT_CUDA(cudaLaunchHostFunc(s, finished, &reports[k]));
    ASSERT_CUDA(cudaEventRecord(end[k], s));
  }
  ASSERT_CUDA(cudaStreamWaitEvent(fast, end[0], 0));
  ASSERT_CUDA(cudaStreamSynchronize(fast));  // both are done now
  ASSERT_CUDA(cudaEventQuery(end[0]));
  for (int k = 0; k < 2; k++) {
    float ms = 0;
    ASSERT_CUDA(cudaEventElapsedTime(&ms, begin[k], end[k]));
    std::fprintf(stderr, "%s: %.3f ms\n", k ? "urgent" : "background", ms);
  }
  auto longest = [](int first, int n) {
    int top = 0;
    for (int i = 0; i < n; i++) {
      int k = 0;
      for (long long v = first + i; v != 1; k++) v = v & 1 ? 3 * v + 1 : v >> 1;
      top = std::max(top, k);
    }
    return top;
  };
  bool ok = given == greatest && reports[0].calls == 1 && reports[1].calls == 1;
  ok = ok && reports[0].value == longest(1, background) && reports[1].value == longest(100000, urgent);
  std::printf("longest chains: %d and %d steps\n", reports[0].value, reports[1].value);
  for (int k = 0; k < 2; k++) {
    ASSERT_CUDA(cudaFree(steps[k]));
    ASSERT_CUDA(cudaFree(best[k]));
    ASSERT_CUDA(cudaEventDestroy(begin[k]));
    ASSERT_CUDA(cudaEventDestroy(end[k]));
  }
  ASSERT_CUDA(cudaFreeHost(pinned));
  ASSERT_CUDA(cudaStreamDestroy(slow));
  ASSERT_CUDA(cudaStreamDestroy(fast));
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
