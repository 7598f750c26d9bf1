// title: Shell-like comb of compare-exchange passes and a parity check, grid-wide barriers between them
// features: cooperative_launch, cooperative_groups, coalesced_groups
// args: 1024

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <cooperative_groups.h>

namespace cg = cooperative_groups;
using namespace std;

static void must(cudaError_t e) {
  if (e != cudaSuccess) {
    cerr << "CUDA: " << cudaGetErrorString(e) << endl;
    exit(1);
  }
}

// Batcher's odd-even merge exchange for any n that is a power of two.
__global__ void mergeExchange(int* x, int n, unsigned* swaps) {
  cg::grid_group grid = cg::this_grid();
  for (int p = n / 2; p > 0; p /= 2) {
    int q = n / 2, r = 0, d = p;
    while (true) {
      for (int i = (int)grid.thread_rank(); i < n - d; i += (int)grid.size())
        if ((i & p) == r && x[i] > x[i + d]) {
          int t = x[i];
          x[i] = x[i + d];
          x[i + d] = t;
          cg::coalesced_group active = cg::coalesced_threads();  // one addition for those that swap together
          if (active.thread_rank() == 0) atomicAdd(swaps, active.size());
        }
      grid.sync();
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

int main(int argc, char** argv) {
  int n = argc > 1 ? atoi(argv[1]) : 1024;
  while (n & (n - 1)) n++;
  vector<int> x(n), want, got(n);
  for (int i = 0; i < n; i++) x[i] = (i * 7919 + i * i % 101) % 3001;
  int* d;
  unsigned *swaps, count = 0;
  must(cudaMalloc(&d, n * sizeof(int)));
  must(cudaMalloc(&swaps, sizeof(unsigned)));
  must(cudaMemset(swaps, 0, sizeof(unsigned)));
  must(cudaMemcpy(d, x.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  void* args[] = {&d, &n, &swaps};
  must(cudaLaunchCooperativeKernel((const void*)mergeExchange, dim3(4), dim3(64), args));
  must(cudaDeviceSynchronize());
  must(cudaMemcpy(got.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost));
  must(cudaMemcpy(&count, swaps, sizeof count, cudaMemcpyDeviceToHost));
  must(cudaFree(d));
  must(cudaFree(swaps));
  // the same network, sequentially
  want = x;
  unsigned expected = 0;
  for (int p = n / 2; p > 0; p /= 2)
    for (int q = n / 2, r = 0, dist = p;; dist = q - p, q /= 2, r = p) {
      for (int i = 0; i < n - dist; i++)
        if ((i & p) == r && want[i] > want[i + dist]) {
          swap(want[i], want[i + dist]);
          expected++;
        }
      if (q == p) break;
    }
  bool ok = is_sorted(got.begin(), got.end()) && got == want && count == expected;
  cout << n << " values, " << count << " exchanges, from " << got.front() << " to " << got.back() << endl;
  cout << (ok ? "PASSED" : "FAILED") << endl;
  return ok ? 0 : 1;
}
