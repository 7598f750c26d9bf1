// title: Solutions of the n-queens problem: prefixes on the host, an iterative search with a stack per thread
// features: shared_memory, bit_operations, atomics, local_arrays
// args: 9

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

using u32 = std::uint32_t;
using u64 = unsigned long long;

inline void cudaOk(cudaError_t e) {
  if (e) {
    std::fprintf(stderr, "%s\n", cudaGetErrorName(e));
    std::exit(3);
  }
}

struct Board {
  u32 columns, left, right;
};

constexpr int kMaxDepth = 16, kBlock = 64;

__global__ void __launch_bounds__(kBlock) search(const Board* starts, int count, int rows, u32 full, u64* total) {
  __shared__ u64 found;
  if (threadIdx.x == 0) found = 0;
  __syncthreads();
  int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id < count) {
    u32 free[kMaxDepth], columns[kMaxDepth], left[kMaxDepth], right[kMaxDepth];
    int depth = 0;
    u64 mine = 0;
    columns[0] = starts[id].columns, left[0] = starts[id].left, right[0] = starts[id].right;
    free[0] = full & ~(columns[0] | left[0] | right[0]);
    while (depth >= 0) {
      if (free[depth] == 0) {
        depth--;
        continue;
      }
      u32 bit = free[depth] & -free[depth];
      free[depth] ^= bit;
      if (depth == rows - 1) {
        mine++;
        continue;
      }
      columns[depth + 1] = columns[depth] | bit;
      left[depth + 1] = (left[depth] | bit) << 1;
      right[depth + 1] = (right[depth] | bit) >> 1;
      depth++;
      free[depth] = full & ~(columns[depth] | left[depth] | right[depth]);
    }
    atomicAdd(&found, mine);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(total, found);
}

static void prefixes(Board b, int rows, u32 full, std::vector<Board>& out) {
  if (rows == 0) {
    out.push_back(b);
    return;
  }
  for (u32 free = full & ~(b.columns | b.left | b.right); free;) {
    u32 bit = free & (~free + 1);
    free ^= bit;
    prefixes({b.columns | bit, (b.left | bit) << 1, (b.right | bit) >> 1}, rows - 1, full, out);
  }
}

int main(int argc, char** argv) {
  const int largest = argc > 1 ? std::atoi(argv[1]) : 9;
  const u64 known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200};
  bool ok = true;
  for (int n = 5; n <= largest; n++) {
    const u32 full = (1u << n) - 1;
    std::vector<Board> starts;
    prefixes({0, 0, 0}, 2, full, starts);
    Board* d_starts;
    u64 *d_total, total = 0;
    cudaOk(cudaMalloc(&d_starts, starts.size() * sizeof(Board)));
    cudaOk(cudaMalloc(&d_total, sizeof(u64)));
    cudaOk(cudaMemcpy(d_starts, starts.data(), starts.size() * sizeof(Board), cudaMemcpyHostToDevice));
    cudaOk(cudaMemset(d_total, 0, sizeof(u64)));
    int blocks = ((int)starts.size() + kBlock - 1) / kBlock;
    search<<<blocks, kBlock>>>(d_starts, (int)starts.size(), n - 2, full, d_total);
    cudaOk(cudaGetLastError());
    cudaOk(cudaMemcpy(&total, d_total, sizeof(u64), cudaMemcpyDeviceToHost));
    cudaOk(cudaFree(d_starts));
    cudaOk(cudaFree(d_total));
    std::printf("%2d queens: %llu solutions from %zu prefixes\n", n, total, starts.size());
    std::vector<Board> all;
    prefixes({0, 0, 0}, n, full, all);
    ok = ok && total == all.size() && (n > 12 || total == known[n]);
  }
  std::puts(ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
