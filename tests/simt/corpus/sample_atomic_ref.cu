// title: libcu++: atomic references with orders and scopes, spans, a histogram and a queue
// features: libcudacxx, atomics, source_location, std_flags
// flags: -std=c++20

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <cuda/atomic>
#include <cuda/std/cstdint>
#include <cuda/std/span>

void check(cudaError_t e, int line = __builtin_LINE()) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(e));
  std::exit(1);
}

using Words = cuda::std::span<const cuda::std::uint32_t>;

// Letters of a byte stream, four to a word; sub-histograms in shared memory with a block-wide scope.
__global__ void histogram(Words words, cuda::std::span<unsigned> bins) {
  __shared__ unsigned local[32];
  if (threadIdx.x < 32) local[threadIdx.x] = 0;
  __syncthreads();
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words.size(); i += gridDim.x * blockDim.x)
    for (int shift = 0; shift < 32; shift += 8) {
      cuda::atomic_ref<unsigned, cuda::thread_scope_block> bin(local[words[i] >> shift & 31]);
      bin.fetch_add(1, cuda::std::memory_order_relaxed);
    }
  __syncthreads();
  if (threadIdx.x < 32) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> bin(bins[threadIdx.x]);
    bin.fetch_add(local[threadIdx.x], cuda::std::memory_order_relaxed);
  }
}

// The largest word by compare-and-swap, and a queue of the words above a limit.
__global__ void largest(Words words, cuda::std::uint32_t limit, unsigned* best, unsigned* tail, cuda::std::span<cuda::std::uint32_t> queue) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words.size(); i += gridDim.x * blockDim.x) {
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> top(*best);
    unsigned seen = top.load(cuda::std::memory_order_relaxed);
    while (seen < words[i] && !top.compare_exchange_weak(seen, words[i], cuda::std::memory_order_relaxed)) {
    }
    if (words[i] > limit) {
      cuda::atomic_ref<unsigned, cuda::thread_scope_device> end(*tail);
      queue[end.fetch_add(1u)] = words[i];
    }
  }
}

int main() {
  const int n = 3000;
  std::vector<uint32_t> host(n);
  uint32_t s = 77;
  for (auto& w : host) w = s = s * 747796405u + 2891336453u;
  uint32_t *words, *queue;
  unsigned* counters;  // 32 bins, the best, the tail
  check(cudaMalloc(&words, n * sizeof(uint32_t)));
  check(cudaMalloc(&queue, n * sizeof(uint32_t)));
  check(cudaMalloc(&counters, 34 * sizeof(unsigned)));
  check(cudaMemset(counters, 0, 34 * sizeof(unsigned)));
  check(cudaMemcpy(words, host.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
  const uint32_t limit = 0xf0000000u;
  histogram<<<6, 96>>>(Words(words, n), cuda::std::span<unsigned>(counters, 32));
  check(cudaGetLastError());
  largest<<<6, 96>>>(Words(words, n), limit, counters + 32, counters + 33, cuda::std::span<cuda::std::uint32_t>(queue, n));
  check(cudaGetLastError());
  std::vector<unsigned> got(34), want(34, 0);
  check(cudaMemcpy(got.data(), counters, 34 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  std::vector<uint32_t> above(got[33]);
  check(cudaMemcpy(above.data(), queue, got[33] * sizeof(uint32_t), cudaMemcpyDeviceToHost));
  check(cudaFree(words));
  check(cudaFree(queue));
  check(cudaFree(counters));
  uint64_t sum = 0, queued = 0;
  for (uint32_t w : host) {
    for (int shift = 0; shift < 32; shift += 8) want[w >> shift & 31]++;
    if (w > want[32]) want[32] = w;
    if (w > limit) want[33]++, sum += w;
  }
  queued = std::accumulate(above.begin(), above.end(), uint64_t(0));
  std::printf("bin 0: %u, largest %08x, %u words above the limit\n", got[0], got[32], got[33]);
  const bool ok = got == want && sum == queued;
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
