// title: Huffman coding: histogram, codes on the host, positions by a scan, bits packed with atomics, and decoding
// features: atomics, shared_memory, bit_operations, cooperative_groups
// args: 3000

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;
typedef unsigned int uint;
typedef unsigned char uchar;

#define CUDA_ASSERT(x)                                                              \
  do {                                                                              \
    cudaError_t e = (x);                                                            \
    if (e != cudaSuccess) {                                                         \
      printf("%s(%i) : %s\n", __FILE__, __LINE__, cudaGetErrorString(e));           \
      exit(-1);                                                                     \
    }                                                                               \
  } while (0)

__global__ void histogram(const uchar* text, int n, uint* bins) {
  __shared__ uint local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&local[text[i]], 1);
  __syncthreads();
  if (local[threadIdx.x]) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// Exclusive sums of the code lengths within a block; the block's total goes to `totals`.
__global__ void positions(const uchar* text, int n, const uint* lengths, uint* at, uint* totals) {
  __shared__ uint warps[8];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  uint length = i < n ? lengths[text[i]] : 0, sum = length;
  for (int d = 1; d < 32; d *= 2) {
    uint v = warp.shfl_up(sum, d);
    if (warp.thread_rank() >= d) sum += v;
  }
  if (warp.thread_rank() == 31) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  uint before = 0;
  for (int w = 0; w < (int)threadIdx.x / 32; w++) before += warps[w];
  if (i < n) at[i] = before + sum - length;
  if (threadIdx.x == blockDim.x - 1) totals[blockIdx.x] = before + sum;
}

__global__ void pack(const uchar* text, int n, const uint* codes, const uint* lengths, const uint* at, const uint* blockStart, uint* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  uint bit = blockStart[blockIdx.x] + at[i], length = lengths[text[i]], code = codes[text[i]];
  uint word = bit / 32, room = 32 - bit % 32;
  if (length <= room) {
    atomicOr(&out[word], code << (room - length));
  } else {
    atomicOr(&out[word], code >> (length - room));
    atomicOr(&out[word + 1], code << (32 - (length - room)));
  }
}

struct Tree {
  uint weight;
  int left, right, symbol;
};

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 3000, threads = 256, blocks = (n + threads - 1) / threads;
  std::vector<uchar> text(n);
  uint s = 42;
  for (int i = 0; i < n; i++) {
    s = s * 1664525u + 1013904223u;
    text[i] = (uchar)('a' + __builtin_ctz((s >> 8) | 0x10000u) + (s >> 30));  // short codes for frequent letters
  }
  uchar* d_text;
  uint *d_bins, *d_codes, *d_lengths, *d_at, *d_totals, *d_out;
  CUDA_ASSERT(cudaMalloc(&d_text, n));
  CUDA_ASSERT(cudaMalloc(&d_bins, 256 * sizeof(uint)));
  CUDA_ASSERT(cudaMalloc(&d_codes, 256 * sizeof(uint)));
  CUDA_ASSERT(cudaMalloc(&d_lengths, 256 * sizeof(uint)));
  CUDA_ASSERT(cudaMalloc(&d_at, n * sizeof(uint)));
  CUDA_ASSERT(cudaMalloc(&d_totals, blocks * sizeof(uint)));
  CUDA_ASSERT(cudaMemcpy(d_text, text.data(), n, cudaMemcpyHostToDevice));
  CUDA_ASSERT(cudaMemset(d_bins, 0, 256 * sizeof(uint)));
  histogram<<<4, 256>>>(d_text, n, d_bins);
  CUDA_ASSERT(cudaGetLastError());
  std::vector<uint> bins(256), codes(256, 0), lengths(256, 0), totals(blocks);
  CUDA_ASSERT(cudaMemcpy(bins.data(), d_bins, 256 * sizeof(uint), cudaMemcpyDeviceToHost));

  std::vector<Tree> tree;
  using Entry = std::pair<uint, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  for (int c = 0; c < 256; c++)
    if (bins[c]) {
      queue.emplace(bins[c], (int)tree.size());
      tree.push_back({bins[c], -1, -1, c});
    }
  while (queue.size() > 1) {
    Entry a = queue.top();
    queue.pop();
    Entry b = queue.top();
    queue.pop();
    queue.emplace(a.first + b.first, (int)tree.size());
    tree.push_back({a.first + b.first, a.second, b.second, -1});
  }
  std::function<void(int, uint, uint)> walk = [&](int node, uint code, uint length) {
    if (tree[node].symbol >= 0) {
      codes[tree[node].symbol] = code, lengths[tree[node].symbol] = length;
    } else {
      walk(tree[node].left, code << 1, length + 1);
      walk(tree[node].right, code << 1 | 1, length + 1);
    }
  };
  walk(queue.top().second, 0, 0);
  CUDA_ASSERT(cudaMemcpy(d_codes, codes.data(), 256 * sizeof(uint), cudaMemcpyHostToDevice));
  CUDA_ASSERT(cudaMemcpy(d_lengths, lengths.data(), 256 * sizeof(uint), cudaMemcpyHostToDevice));
  positions<<<blocks, threads>>>(d_text, n, d_lengths, d_at, d_totals);
  CUDA_ASSERT(cudaGetLastError());
  CUDA_ASSERT(cudaMemcpy(totals.data(), d_totals, blocks * sizeof(uint), cudaMemcpyDeviceToHost));
  uint bits = 0;
  for (uint& t : totals) {
    uint start = bits;
    bits += t;
    t = start;
  }
  CUDA_ASSERT(cudaMemcpy(d_totals, totals.data(), blocks * sizeof(uint), cudaMemcpyHostToDevice));
  std::vector<uint> out(bits / 32 + 2);
  CUDA_ASSERT(cudaMalloc(&d_out, out.size() * sizeof(uint)));
  CUDA_ASSERT(cudaMemset(d_out, 0, out.size() * sizeof(uint)));
  pack<<<blocks, threads>>>(d_text, n, d_codes, d_lengths, d_at, d_totals, d_out);
  CUDA_ASSERT(cudaGetLastError());
  CUDA_ASSERT(cudaMemcpy(out.data(), d_out, out.size() * sizeof(uint), cudaMemcpyDeviceToHost));
  for (void* p : {(void*)d_text, (void*)d_bins, (void*)d_codes, (void*)d_lengths, (void*)d_at, (void*)d_totals, (void*)d_out})
    CUDA_ASSERT(cudaFree(p));

  std::vector<uint> count(256, 0);
  for (uchar c : text) count[c]++;
  bool ok = count == bins;
  uint position = 0;
  for (int i = 0; i < n && ok; i++) {
    int node = queue.top().second;
    while (tree[node].symbol < 0) {
      uint bit = out[position / 32] >> (31 - position % 32) & 1;
      node = bit ? tree[node].right : tree[node].left;
      position++;
    }
    ok = tree[node].symbol == text[i];
  }
  ok = ok && position == bits;
  printf("%d bytes in %u bits, most frequent letter: %u times\n", n, bits, *std::max_element(bins.begin(), bins.end()));
  puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
