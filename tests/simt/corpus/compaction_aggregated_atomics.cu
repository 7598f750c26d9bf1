// title: filtering of an array: atomics per thread, per block, and aggregated over a warp or a coalesced group
// features: cooperative_groups, coalesced_groups, atomics, warp_votes, compaction

#include <cooperative_groups.h>
#include <algorithm>
#include <cassert>
#include <iostream>
#include <vector>

using namespace cooperative_groups;
namespace cg = cooperative_groups;

#define gpuErrchk(ans) gpuAssert((ans), __FILE__, __LINE__)
inline void gpuAssert(cudaError_t code, const char *file, int line) {
  if (code != cudaSuccess) {
    std::cerr << "GPUassert: " << cudaGetErrorString(code) << " " << file << " " << line << std::endl;
    exit(code);
  }
}

// Every thread adds one to the counter.
__global__ void filter_plain(int *dst, int *nres, const int *src, int n, int threshold) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i < n && src[i] > threshold) dst[atomicAdd(nres, 1)] = src[i];
}

// A counter per block in shared memory; one atomic on the global counter per block.
__global__ void filter_shared(int *dst, int *nres, const int *src, int n, int threshold) {
  __shared__ int l_n;
  const int elements = 4;
  int i = blockIdx.x * (elements * blockDim.x) + threadIdx.x;
  for (int iter = 0; iter < elements; iter++) {
    if (threadIdx.x == 0) l_n = 0;
    __syncthreads();
    int d = 0, pos = 0;
    if (i < n) {
      d = src[i];
      if (d > threshold) pos = atomicAdd(&l_n, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0) l_n = atomicAdd(nres, l_n);
    __syncthreads();
    if (i < n && d > threshold) dst[pos + l_n] = d;
    __syncthreads();
    i += blockDim.x;
  }
}

__device__ int atomicAggIncMask(int *ctr) {
  unsigned mask = __activemask();
  int leader = __ffs(mask) - 1;
  unsigned lane = threadIdx.x & 31;
  int res = 0;
  if (lane == leader) res = atomicAdd(ctr, __popc(mask));
  res = __shfl_sync(mask, res, leader);
  return res + __popc(mask & ((1u << lane) - 1));
}

__global__ void filter_mask(int *dst, int *nres, const int *src, int n, int threshold) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (i >= n) return;
  if (src[i] > threshold) dst[atomicAggIncMask(nres)] = src[i];
}

// The threads that come here together elect one that adds for all.
__device__ int atomicAggInc(int *ptr) {
  cg::coalesced_group g = cg::coalesced_threads();
  int prev = 0;
  if (g.thread_rank() == 0) prev = atomicAdd(ptr, g.size());
  prev = g.thread_rank() + g.shfl(prev, 0);
  return prev;
}

__global__ void filter_coalesced(int *dst, int *nres, const int *src, int n, int threshold) {
  int id = threadIdx.x + blockIdx.x * blockDim.x;
  for (int i = id; i < n; i += gridDim.x * blockDim.x)
    if (src[i] > threshold) dst[atomicAggInc(nres)] = src[i];
}

// Stable within a warp: the order of the survivors is that of the source.
__global__ void filter_one_warp_stable(int *dst, int *nres, const int *src, int n, int threshold) {
  thread_block_tile<32> warp = tiled_partition<32>(this_thread_block());
  int kept = 0;
  for (int start = 0; start < n; start += 32) {
    int i = start + warp.thread_rank();
    bool keep = i < n && src[i] > threshold;
    unsigned votes = warp.ballot(keep);
    if (keep) dst[kept + __popc(votes & ((1u << warp.thread_rank()) - 1u))] = src[i];
    kept += __popc(votes);
  }
  if (warp.thread_rank() == 0) *nres = kept;
}

typedef void (*Filter)(int *, int *, const int *, int, int);

int main() {
  const int n = 10000, threshold = 350;
  std::vector<int> data(n), expected;
  for (int i = 0; i < n; i++) data[i] = (int)((i * 7919LL + 13) % 1000);
  for (int v : data)
    if (v > threshold) expected.push_back(v);
  std::vector<int> expected_sorted = expected;
  std::sort(expected_sorted.begin(), expected_sorted.end());

  int *d_src, *d_dst, *d_nres;
  gpuErrchk(cudaMalloc(&d_src, n * sizeof(int)));
  gpuErrchk(cudaMalloc(&d_dst, n * sizeof(int)));
  gpuErrchk(cudaMalloc(&d_nres, sizeof(int)));
  gpuErrchk(cudaMemcpy(d_src, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));

  struct {
    const char *name;
    Filter f;
    int blocks, threads;
    bool stable;
  } runs[] = {{"plain", filter_plain, (n + 127) / 128, 128, false},
              {"shared", filter_shared, (n + 511) / 512, 128, false},
              {"active mask", filter_mask, (n + 127) / 128, 128, false},
              {"coalesced group", filter_coalesced, 10, 192, false},
              {"one warp, stable", filter_one_warp_stable, 1, 32, true}};
  bool ok = true;
  for (auto &run : runs) {
    gpuErrchk(cudaMemset(d_nres, 0, sizeof(int)));
    run.f<<<run.blocks, run.threads>>>(d_dst, d_nres, d_src, n, threshold);
    gpuErrchk(cudaGetLastError());
    int nres = -1;
    gpuErrchk(cudaMemcpy(&nres, d_nres, sizeof(int), cudaMemcpyDeviceToHost));
    assert(nres >= 0 && nres <= n);
    std::vector<int> got(nres);
    gpuErrchk(cudaMemcpy(got.data(), d_dst, nres * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = run.stable ? got == expected : true;
    std::sort(got.begin(), got.end());
    right = right && got == expected_sorted;
    std::cout << run.name << ": " << nres << " of " << n << " kept" << (right ? "" : ", WRONG") << '\n';
    ok = ok && right;
  }
  gpuErrchk(cudaFree(d_src));
  gpuErrchk(cudaFree(d_dst));
  gpuErrchk(cudaFree(d_nres));
  std::cout << (ok ? "PASSED" : "FAILED") << '\n';
  return !ok;
}
