// title: CUB's block and warp primitives: load, scan, store, reductions with several operators
// features: cub, templates, shared_memory

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/cub.cuh>

#define CubDebugExitLike(e)                                         \
  {                                                                 \
    if ((e) != cudaSuccess) {                                       \
      printf("CUDA error in line %d\n", __LINE__);                  \
      exit(1);                                                      \
    }                                                               \
  }

template <int BLOCK_THREADS, int ITEMS, cub::BlockScanAlgorithm ALGORITHM>
__global__ void blockPrefixSum(const int* in, int* out, int* aggregates) {
  using Load = cub::BlockLoad<int, BLOCK_THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Store = cub::BlockStore<int, BLOCK_THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
  using Scan = cub::BlockScan<int, BLOCK_THREADS, ALGORITHM>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Store::TempStorage store;
    typename Scan::TempStorage scan;
  } temp;
  int data[ITEMS], aggregate;
  const int offset = blockIdx.x * BLOCK_THREADS * ITEMS;
  Load(temp.load).Load(in + offset, data);
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(data, data, aggregate);
  __syncthreads();
  Store(temp.store).Store(out + offset, data);
  if (threadIdx.x == 0) aggregates[blockIdx.x] = aggregate;
}

struct Widest {
  __device__ int2 operator()(const int2& a, const int2& b) const { return a.y - a.x >= b.y - b.x ? a : b; }
};

template <int BLOCK_THREADS>
__global__ void blockExtremes(const int* in, int* out, int2* widest, int n) {
  using Reduce = cub::BlockReduce<int, BLOCK_THREADS, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using Pairs = cub::BlockReduce<int2, BLOCK_THREADS>;
  __shared__ typename Reduce::TempStorage temp;
  __shared__ typename Pairs::TempStorage pairs;
  int i = threadIdx.x;
  int v = i < n ? in[i] : 0;
  int low = Reduce(temp).Reduce(v, [](int a, int b) { return a < b ? a : b; }, n);  // the first n threads alone
  __syncthreads();
  int sum = Reduce(temp).Sum(v);
  int2 w = Pairs(pairs).Reduce(i < n ? make_int2(i, i + v) : make_int2(0, 0), Widest());
  if (i == 0) {
    out[0] = low;
    out[1] = sum;
    *widest = w;
  }
}

// Every warp: the running maximum and the sum of its lanes.
__global__ void warps(const int* in, int* running, int* sums) {
  using WarpScan = cub::WarpScan<int>;
  using WarpReduce = cub::WarpReduce<int>;
  __shared__ typename WarpScan::TempStorage scan[4];
  __shared__ typename WarpReduce::TempStorage reduce[4];
  int i = blockIdx.x * blockDim.x + threadIdx.x, w = threadIdx.x / 32, top;
  WarpScan(scan[w]).InclusiveScan(in[i], top, [](int a, int b) { return a > b ? a : b; });
  running[i] = top;
  int sum = WarpReduce(reduce[w]).Sum(in[i]);
  if (threadIdx.x % 32 == 0) sums[i / 32] = sum;
}

int main() {
  constexpr int T = 128, I = 4, B = 3, N = T * I * B;
  std::vector<int> in(N), out(N), aggregates(B);
  unsigned s = 17;
  for (int& v : in) v = (int)((s = s * 1664525u + 1013904223u) >> 20) % 100;
  int *din, *dout, *dagg;
  int2* dwide;
  CubDebugExitLike(cudaMalloc(&din, N * sizeof(int)));
  CubDebugExitLike(cudaMalloc(&dout, N * sizeof(int)));
  CubDebugExitLike(cudaMalloc(&dagg, N * sizeof(int)));
  CubDebugExitLike(cudaMalloc(&dwide, sizeof(int2)));
  CubDebugExitLike(cudaMemcpy(din, in.data(), N * sizeof(int), cudaMemcpyHostToDevice));
  int wrong = 0;
  for (int algorithm = 0; algorithm < 2; algorithm++) {
    if (algorithm)
      blockPrefixSum<T, I, cub::BLOCK_SCAN_RAKING><<<B, T>>>(din, dout, dagg);
    else
      blockPrefixSum<T, I, cub::BLOCK_SCAN_WARP_SCANS><<<B, T>>>(din, dout, dagg);
    CubDebugExitLike(cudaGetLastError());
    CubDebugExitLike(cudaMemcpy(out.data(), dout, N * sizeof(int), cudaMemcpyDeviceToHost));
    CubDebugExitLike(cudaMemcpy(aggregates.data(), dagg, B * sizeof(int), cudaMemcpyDeviceToHost));
    for (int b = 0; b < B; b++) {
      int sum = 0;
      for (int i = b * T * I; i < (b + 1) * T * I; sum += in[i++]) wrong += out[i] != sum;
      wrong += aggregates[b] != sum;
    }
    printf("scan %d: aggregates %d %d %d\n", algorithm, aggregates[0], aggregates[1], aggregates[2]);
  }
  const int part = 100;
  int2 wide;
  blockExtremes<T><<<1, T>>>(din, dout, dwide, part);
  CubDebugExitLike(cudaGetLastError());
  CubDebugExitLike(cudaMemcpy(out.data(), dout, 2 * sizeof(int), cudaMemcpyDeviceToHost));
  CubDebugExitLike(cudaMemcpy(&wide, dwide, sizeof wide, cudaMemcpyDeviceToHost));
  int low = in[0], sum = 0, best = 0;
  for (int i = 0; i < part; i++) {
    low = in[i] < low ? in[i] : low;
    sum += in[i];
    best = in[i] > best ? in[i] : best;
  }
  printf("smallest %d, sum %d, widest %d\n", out[0], out[1], wide.y - wide.x);
  wrong += out[0] != low || out[1] != sum || wide.y - wide.x != best || in[wide.x] != best;
  warps<<<N / T, T>>>(din, dout, dagg);
  CubDebugExitLike(cudaGetLastError());
  CubDebugExitLike(cudaMemcpy(out.data(), dout, N * sizeof(int), cudaMemcpyDeviceToHost));
  std::vector<int> sums(N / 32);
  CubDebugExitLike(cudaMemcpy(sums.data(), dagg, sums.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (int w = 0; w < N / 32; w++) {
    int top = -1, total = 0;
    for (int i = w * 32; i < w * 32 + 32; i++) {
      top = in[i] > top ? in[i] : top;
      total += in[i];
      wrong += out[i] != top;
    }
    wrong += sums[w] != total;
  }
  CubDebugExitLike(cudaFree(din));
  CubDebugExitLike(cudaFree(dout));
  CubDebugExitLike(cudaFree(dagg));
  CubDebugExitLike(cudaFree(dwide));
  printf("%s\n", wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
