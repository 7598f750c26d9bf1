// title: Searches in a B+ tree: one block a query, the threads compare all keys of a node
// features: structs, shared_memory, pointers_as_indices
// args: 3000 200

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <vector>

#define ORDER 32

#define CK(call)                                                                 \
  do {                                                                           \
    cudaError_t e = (call);                                                      \
    if (e != cudaSuccess) {                                                      \
      fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e));         \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)

// keys[i] <= key < keys[i + 1] leads to child i
struct knode {
  int location;
  int indices[ORDER + 1];
  int keys[ORDER + 1];
  bool is_leaf;
  int num_keys;
};

__global__ void findK(int height, const knode* __restrict__ nodes, int root, const int* __restrict__ keys, int* answers) {
  __shared__ int current, next;
  const int t = threadIdx.x, query = keys[blockIdx.x];
  if (t == 0) {
    current = root;
    answers[blockIdx.x] = -1;
  }
  __syncthreads();
  for (int level = 0; level < height; level++) {
    const knode* n = &nodes[current];
    if (t < n->num_keys && n->keys[t] <= query && query < n->keys[t + 1]) next = n->indices[t];
    __syncthreads();
    if (t == 0) current = next;
    __syncthreads();
  }
  const knode* leaf = &nodes[current];
  if (t < leaf->num_keys && leaf->keys[t] == query) answers[blockIdx.x] = leaf->indices[t];
}

// How many records lie in [start, end]: two walks at once, then a sum over the leaves between.
__global__ void findRangeK(int height, const knode* nodes, int root, const int* start, const int* end, int* counts) {
  __shared__ int at[2], next[2], total;
  const int t = threadIdx.x, b = blockIdx.x, low = start[b], high = end[b];
  if (t < 2) at[t] = root;
  if (t == 2) total = 0;
  __syncthreads();
  for (int level = 0; level < height; level++) {
    for (int side = 0; side < 2; side++) {
      const knode* n = &nodes[at[side]];
      int q = side ? high : low;
      if (t < n->num_keys && n->keys[t] <= q && q < n->keys[t + 1]) next[side] = n->indices[t];
    }
    __syncthreads();
    if (t < 2) at[t] = next[t];
    __syncthreads();
  }
  for (int leaf = at[0]; leaf <= at[1]; leaf++)  // leaves lie one after the other
    if (t < nodes[leaf].num_keys && nodes[leaf].keys[t] >= low && nodes[leaf].keys[t] <= high) atomicAdd(&total, 1);
  __syncthreads();
  if (t == 0) counts[b] = total;
}

int main(int argc, char** argv) {
  const int records = argc > 1 ? atoi(argv[1]) : 3000, queries = argc > 2 ? atoi(argv[2]) : 200;
  std::map<int, int> model;
  for (int i = 0; i < records; i++) model[(int)((i * 2654435761u) >> 12) % 50000] = i;
  std::vector<knode> nodes;
  std::vector<std::pair<int, int>> items(model.begin(), model.end());
  const int highest = 1 << 30, fill = ORDER * 3 / 4;
  auto build = [&](const std::vector<std::pair<int, int>>& entries, bool leaf) {
    std::vector<std::pair<int, int>> up;
    for (size_t i = 0; i < entries.size(); i += fill) {
      knode n = {};
      n.location = (int)nodes.size();
      n.is_leaf = leaf;
      for (size_t k = i; k < std::min(entries.size(), i + fill); k++) {
        n.keys[n.num_keys] = entries[k].first;
        n.indices[n.num_keys++] = entries[k].second;
      }
      n.keys[n.num_keys] = i + fill < entries.size() ? entries[i + fill].first : highest;
      up.emplace_back(i == 0 ? -1 : entries[i].first, n.location);
      nodes.push_back(n);
    }
    return up;
  };
  int height = 0;
  auto up = build(items, true);
  while (up.size() > 1) {
    up = build(up, false);
    height++;
  }
  std::vector<int> keys(queries), ends(queries), answers(queries), counts(queries);
  for (int i = 0; i < queries; i++) {
    keys[i] = i % 2 ? items[(i * 37) % items.size()].first : (i * 977) % 50000;
    ends[i] = std::min(keys[i] + i * 20, 49999);
  }
  knode* d_nodes;
  int *d_keys, *d_ends, *d_out;
  CK(cudaMalloc(&d_nodes, nodes.size() * sizeof(knode)));
  CK(cudaMalloc(&d_keys, queries * sizeof(int)));
  CK(cudaMalloc(&d_ends, queries * sizeof(int)));
  CK(cudaMalloc(&d_out, queries * sizeof(int)));
  CK(cudaMemcpy(d_nodes, nodes.data(), nodes.size() * sizeof(knode), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_keys, keys.data(), queries * sizeof(int), cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_ends, ends.data(), queries * sizeof(int), cudaMemcpyHostToDevice));
  const int root = up[0].second;
  findK<<<queries, ORDER>>>(height, d_nodes, root, d_keys, d_out);
  CK(cudaGetLastError());
  CK(cudaMemcpy(answers.data(), d_out, queries * sizeof(int), cudaMemcpyDeviceToHost));
  findRangeK<<<queries, ORDER>>>(height, d_nodes, root, d_keys, d_ends, d_out);
  CK(cudaGetLastError());
  CK(cudaMemcpy(counts.data(), d_out, queries * sizeof(int), cudaMemcpyDeviceToHost));
  CK(cudaFree(d_nodes));
  CK(cudaFree(d_keys));
  CK(cudaFree(d_ends));
  CK(cudaFree(d_out));
  int wrong = 0, found = 0;
  long sum = 0;
  for (int i = 0; i < queries; i++) {
    auto it = model.find(keys[i]);
    wrong += answers[i] != (it == model.end() ? -1 : it->second);
    wrong += counts[i] != std::distance(model.lower_bound(keys[i]), model.upper_bound(ends[i]));
    found += answers[i] >= 0;
    sum += counts[i];
  }
  printf("%zu records, %zu nodes, height %d: %d of %d found, %ld in the ranges\n", items.size(), nodes.size(), height, found, queries, sum);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
