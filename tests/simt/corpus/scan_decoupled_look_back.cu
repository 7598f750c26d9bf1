// title: prefix sum in a single pass with decoupled look-back
// features: scan, memory_fences, atomics, warp_shuffles, spinning_on_other_blocks

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#define CUCHECK(call)                                                              \
  if (cudaError_t status = (call)) {                                               \
    std::fprintf(stderr, "%s at line %d\n", cudaGetErrorString(status), __LINE__); \
    std::exit(1);                                                                  \
  }

namespace single_pass {

enum Flag : uint32_t { kInvalid = 0, kAggregate = 1, kPrefix = 2 };

constexpr int kThreads = 128;
constexpr int kItems = 4;
constexpr int kPerBlock = kThreads * kItems;

// A flag and a value in one 64-bit word, so that both are seen at once.
__device__ inline unsigned long long pack(Flag flag, uint32_t value) {
  return (static_cast<unsigned long long>(flag) << 32) | value;
}

__device__ uint32_t warp_inclusive(uint32_t x) {
  const int lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    uint32_t y = __shfl_up_sync(0xffffffffu, x, d);
    if (lane >= d) x += y;
  }
  return x;
}

__device__ uint32_t block_exclusive(uint32_t x, uint32_t& total) {
  __shared__ uint32_t warp_totals[kThreads / 32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const uint32_t inclusive = warp_inclusive(x);
  if (lane == 31) warp_totals[warp] = inclusive;
  __syncthreads();
  uint32_t before = 0;
  total = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warp_totals[w];
    total += warp_totals[w];
  }
  return before + inclusive - x;
}

__global__ void scan(const uint32_t* in, uint32_t* out, int n, volatile unsigned long long* states,
                     unsigned int* next_tile) {
  __shared__ int tile_shared;
  __shared__ uint32_t prefix_shared;
  // Tiles are taken in the order in which blocks start: a block waits only for blocks that run already.
  if (threadIdx.x == 0) tile_shared = atomicAdd(next_tile, 1);
  __syncthreads();
  const int tile = tile_shared;
  const int first = tile * kPerBlock + threadIdx.x * kItems;

  uint32_t items[kItems], sum = 0;
  for (int i = 0; i < kItems; ++i) {
    items[i] = first + i < n ? in[first + i] : 0;
    sum += items[i];
  }
  uint32_t total;
  uint32_t before = block_exclusive(sum, total);

  if (threadIdx.x == 0) {
    uint32_t exclusive = 0;
    if (tile == 0) {
      states[0] = pack(kPrefix, total);
    } else {
      states[tile] = pack(kAggregate, total);
      for (int look = tile - 1;;) {
        const unsigned long long state = states[look];
        const uint32_t flag = state >> 32;
        if (flag == kInvalid) continue;  // that block has not published anything yet
        exclusive += static_cast<uint32_t>(state);
        if (flag == kPrefix) break;
        --look;
      }
      states[tile] = pack(kPrefix, exclusive + total);
    }
    prefix_shared = exclusive;
  }
  __syncthreads();

  before += prefix_shared;
  for (int i = 0; i < kItems; ++i) {
    before += items[i];
    if (first + i < n) out[first + i] = before;
  }
}

}  // namespace single_pass

int main(int argc, char* argv[]) {
  using namespace single_pass;
  bool ok = true;
  for (int n : {1, 500, 512, 513, 20000, 33333}) {
    std::vector<uint32_t> host(n), result(n);
    for (int i = 0; i < n; i++) host[i] = (i * 2654435761u) >> 26;
    const int tiles = (n + kPerBlock - 1) / kPerBlock;

    uint32_t *in, *out;
    unsigned long long* states;
    unsigned int* next_tile;
    CUCHECK(cudaMalloc(&in, n * sizeof(uint32_t)));
    CUCHECK(cudaMalloc(&out, n * sizeof(uint32_t)));
    CUCHECK(cudaMalloc(&states, tiles * sizeof(*states)));
    CUCHECK(cudaMalloc(&next_tile, sizeof(*next_tile)));
    CUCHECK(cudaMemset(states, 0, tiles * sizeof(*states)));
    CUCHECK(cudaMemset(next_tile, 0, sizeof(*next_tile)));
    CUCHECK(cudaMemcpy(in, host.data(), n * sizeof(uint32_t), cudaMemcpyHostToDevice));
    scan<<<tiles, kThreads>>>(in, out, n, states, next_tile);
    CUCHECK(cudaGetLastError());
    CUCHECK(cudaMemcpy(result.data(), out, n * sizeof(uint32_t), cudaMemcpyDeviceToHost));
    for (void* p : {(void*)in, (void*)out, (void*)states, (void*)next_tile}) CUCHECK(cudaFree(p));

    std::vector<uint32_t> expected(n);
    std::partial_sum(host.begin(), host.end(), expected.begin());
    const bool right = expected == result;
    std::printf("n = %5d, %2d tiles: last %u, %s\n", n, tiles, result.back(), right ? "right" : "wrong");
    ok = ok && right;
  }
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
