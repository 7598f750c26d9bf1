// title: tour of cooperative groups: tiles, nested tiles, binary and labelled partitions, scans, ranks
// features: cooperative_groups, coalesced_groups, labeled_partition, warp_votes

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>
#include <map>
#include <utility>
#include <vector>

namespace cg = cooperative_groups;

#define MUST(x)                                                                        \
  if ((x) != cudaSuccess) {                                                            \
    std::printf("%s: %s\nFAILED\n", #x, cudaGetErrorString(cudaPeekAtLastError()));    \
    return 1;                                                                          \
  }

// For each key, the threads of a warp with that key elect a leader, who adds their sum to the table.
__global__ void sum_by_key(const int *keys, const int *values, int n, int *table, int *group_sizes) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  int i = block.group_index().x * block.size() + block.thread_rank();
  int key = i < n ? keys[i] : -1, value = i < n ? values[i] : 0;
  auto same = cg::labeled_partition(warp, key);
  int sum = cg::reduce(same, value, cg::plus<int>());
  if (same.thread_rank() == 0 && key >= 0) {
    atomicAdd(&table[key], sum);
    atomicAdd(&group_sizes[same.size()], 1);
  }
}

// Even values go left, odd values right, in their order, within tiles of 16.
__global__ void partition_tiles(const int *in, int *out) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int start = i - tile.thread_rank();
  int value = in[i];
  auto part = cg::binary_partition(tile, value % 2 == 0);
  int evens = __popc(tile.ballot(value % 2 == 0));
  int place = value % 2 == 0 ? part.thread_rank() : evens + part.thread_rank();
  out[start + place] = value;
}

__global__ void tile_scans(const int *in, int *inclusive, int *exclusive, int *largest) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  cg::thread_block_tile<8> tile = cg::tiled_partition<8>(warp);
  int i = block.thread_rank();
  inclusive[i] = cg::inclusive_scan(tile, in[i]);
  exclusive[i] = cg::exclusive_scan(warp, in[i], cg::plus<int>());
  int most = cg::reduce(tile, in[i], cg::greater<int>());
  // The first lane of each tile tells the others; meta_group_rank numbers the tiles of the warp.
  largest[i] = tile.shfl(most, 0) * 10 + tile.meta_group_rank();
}

__global__ void neighbours(const int *in, int *out) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int v = in[threadIdx.x];
  int left = warp.shfl_up(v, 1), right = warp.shfl_down(v, 1), mirror = warp.shfl_xor(v, 31);
  bool peak = (warp.thread_rank() == 0 || v > left) && (warp.thread_rank() == warp.size() - 1 || v > right);
  out[threadIdx.x] = (peak ? 1000 : 0) + mirror;
  if (warp.any(v > 90) && !warp.all(v > 90) && warp.thread_rank() == 5) out[threadIdx.x] += 5000;
  // Threads in a branch form a group of their own.
  if (v % 3 == 0) {
    cg::coalesced_group active = cg::coalesced_threads();
    int first = active.shfl(v, 0);
    if (active.thread_rank() == active.num_threads() - 1) out[threadIdx.x] += first * 10000;
  }
}

int main() {
  const int n = 1000, keys = 7;
  int *k, *v, *table, *sizes, *a, *b, *c;
  MUST(cudaMallocManaged(&k, n * sizeof(int)));
  MUST(cudaMallocManaged(&v, n * sizeof(int)));
  MUST(cudaMallocManaged(&table, keys * sizeof(int)));
  MUST(cudaMallocManaged(&sizes, 33 * sizeof(int)));
  MUST(cudaMallocManaged(&a, 128 * sizeof(int)));
  MUST(cudaMallocManaged(&b, 128 * sizeof(int)));
  MUST(cudaMallocManaged(&c, 128 * sizeof(int)));
  int errors = 0;

  std::vector<int> expected(keys, 0);
  std::map<int, int> expected_sizes;
  for (int i = 0; i < n; i++) {
    k[i] = (i * i + i / 9) % keys;
    v[i] = (i * 73 + 5) % 101;
    expected[k[i]] += v[i];
  }
  for (int w = 0; w < n; w += 32) {
    std::map<int, int> count;
    for (int i = w; i < w + 32 && i < n; i++) count[k[i]]++;
    for (auto &p : count) expected_sizes[p.second]++;
  }
  for (int i = 0; i < keys; i++) table[i] = 0;
  for (int i = 0; i < 33; i++) sizes[i] = 0;
  sum_by_key<<<(n + 127) / 128, 128>>>(k, v, n, table, sizes);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < keys; i++) {
    std::printf("key %d: %d\n", i, table[i]);
    errors += table[i] != expected[i];
  }
  for (int i = 0; i < 33; i++) errors += sizes[i] != expected_sizes[i];

  partition_tiles<<<2, 64>>>(v, a);
  MUST(cudaDeviceSynchronize());
  for (int t = 0; t < 128; t += 16) {
    std::vector<int> parts[2];
    for (int i = t; i < t + 16; i++) parts[v[i] % 2].push_back(v[i]);
    parts[0].insert(parts[0].end(), parts[1].begin(), parts[1].end());
    for (int i = 0; i < 16; i++) errors += a[t + i] != parts[0][i];
  }
  std::printf("partitioned: %d %d %d ... %d\n", a[0], a[1], a[2], a[127]);

  tile_scans<<<1, 128>>>(v, a, b, c);
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < 128; i++) {
    int in8 = 0, before32 = 0, most = 0;
    for (int j = i / 8 * 8; j <= i; j++) in8 += v[j];
    for (int j = i / 32 * 32; j < i; j++) before32 += v[j];
    for (int j = i / 8 * 8; j < i / 8 * 8 + 8; j++) most = v[j] > most ? v[j] : most;
    errors += a[i] != in8 || b[i] != before32 || c[i] != most * 10 + i / 8 % 4;
  }
  std::printf("scans: %d %d %d\n", a[127], b[127], c[127]);

  neighbours<<<1, 32>>>(v, a);
  MUST(cudaDeviceSynchronize());
  int some = 0, all = 1, first = -1, last = -1;
  for (int i = 0; i < 32; i++) {
    some |= v[i] > 90;
    all &= v[i] > 90;
    if (v[i] % 3 == 0) first = first < 0 ? i : first, last = i;
  }
  for (int i = 0; i < 32; i++) {
    int e = v[31 - i] + ((i == 0 || v[i] > v[i - 1]) && (i == 31 || v[i] > v[i + 1]) ? 1000 : 0);
    if (some && !all && i == 5) e += 5000;
    if (i == last) e += v[first] * 10000;
    errors += a[i] != e;
  }
  std::printf("neighbours: %d %d\n", a[5], a[last]);

  for (int *p : {k, v, table, sizes, a, b, c}) cudaFree(p);
  std::printf("%d errors\n%s\n", errors, errors ? "FAILED" : "PASSED");
  return errors ? 1 : 0;
}
