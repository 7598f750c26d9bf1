// title: Breadth-first search with masks, two kernels a level
// features: structs, device_flags, benign_ordering
// args: 2000 4

#include <cstdio>
#include <cstdlib>
#include <queue>
#include <vector>

#include <cuda.h>

struct Node {
  int starting;
  int no_of_edges;
};

#define MAX_THREADS_PER_BLOCK 128
#define CHECK(x) \
  do { if ((x) != cudaSuccess) { fprintf(stderr, "error at line %d\n", __LINE__); exit(1); } } while (0)

__global__ void visit(const Node* nodes, const int* edges, bool* mask, int* updating, const bool* visited, int* cost, int n, int level) {
  int tid = blockIdx.x * MAX_THREADS_PER_BLOCK + threadIdx.x;
  if (tid < n && mask[tid]) {
    mask[tid] = false;
    for (int i = nodes[tid].starting; i < nodes[tid].starting + nodes[tid].no_of_edges; i++) {
      int id = edges[i];
      if (!visited[id]) {
        atomicExch(&cost[id], level + 1);  // several threads may write the same value
        atomicExch(&updating[id], 1);
      }
    }
  }
}

__global__ void advance(bool* mask, int* updating, bool* visited, int* over, int n) {
  int tid = blockIdx.x * MAX_THREADS_PER_BLOCK + threadIdx.x;
  if (tid < n && updating[tid]) {
    mask[tid] = true;
    visited[tid] = true;
    updating[tid] = 0;
    atomicOr(over, 1);
  }
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? atoi(argv[1]) : 2000, degree = argc > 2 ? atoi(argv[2]) : 4;
  std::vector<Node> nodes(n);
  std::vector<int> edges;
  unsigned s = 12345;
  for (int i = 0; i < n; i++) {
    nodes[i].starting = (int)edges.size();
    for (int k = 0; k < degree; k++) {
      s = s * 1664525u + 1013904223u;
      int to = (int)((s >> 8) % n);
      if (to % 17) edges.push_back(to);  // some nodes are never reached
    }
    nodes[i].no_of_edges = (int)edges.size() - nodes[i].starting;
  }
  const int source = 0;
  std::vector<int> cost(n, -1), want(n, -1);
  cost[source] = 0;
  Node* d_nodes;
  int *d_edges, *d_cost, *d_updating, *d_over, over, levels = 0;
  bool *d_mask, *d_visited, yes = true;
  CHECK(cudaMalloc((void**)&d_nodes, sizeof(Node) * n));
  CHECK(cudaMalloc((void**)&d_edges, sizeof(int) * edges.size()));
  CHECK(cudaMalloc((void**)&d_cost, sizeof(int) * n));
  CHECK(cudaMalloc((void**)&d_updating, sizeof(int) * n));
  CHECK(cudaMalloc((void**)&d_over, sizeof(int)));
  CHECK(cudaMalloc((void**)&d_mask, n));
  CHECK(cudaMalloc((void**)&d_visited, n));
  CHECK(cudaMemcpy(d_nodes, nodes.data(), sizeof(Node) * n, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_edges, edges.data(), sizeof(int) * edges.size(), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_cost, cost.data(), sizeof(int) * n, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_updating, 0, sizeof(int) * n));
  CHECK(cudaMemset(d_mask, 0, n));
  CHECK(cudaMemset(d_visited, 0, n));
  CHECK(cudaMemcpy(d_mask + source, &yes, 1, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_visited + source, &yes, 1, cudaMemcpyHostToDevice));
  const int blocks = (n + MAX_THREADS_PER_BLOCK - 1) / MAX_THREADS_PER_BLOCK;
  do {
    over = 0;
    CHECK(cudaMemcpy(d_over, &over, sizeof(int), cudaMemcpyHostToDevice));
    visit<<<blocks, MAX_THREADS_PER_BLOCK>>>(d_nodes, d_edges, d_mask, d_updating, d_visited, d_cost, n, levels);
    advance<<<blocks, MAX_THREADS_PER_BLOCK>>>(d_mask, d_updating, d_visited, d_over, n);
    CHECK(cudaGetLastError());
    CHECK(cudaMemcpy(&over, d_over, sizeof(int), cudaMemcpyDeviceToHost));
    levels++;
  } while (over);
  CHECK(cudaMemcpy(cost.data(), d_cost, sizeof(int) * n, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(d_nodes));
  CHECK(cudaFree(d_edges));
  CHECK(cudaFree(d_cost));
  CHECK(cudaFree(d_updating));
  CHECK(cudaFree(d_over));
  CHECK(cudaFree(d_mask));
  CHECK(cudaFree(d_visited));

  std::queue<int> q;
  want[source] = 0;
  for (q.push(source); !q.empty(); q.pop()) {
    const Node& node = nodes[q.front()];
    for (int i = node.starting; i < node.starting + node.no_of_edges; i++)
      if (want[edges[i]] < 0) {
        want[edges[i]] = want[q.front()] + 1;
        q.push(edges[i]);
      }
  }
  int wrong = 0, reached = 0;
  long sum = 0;
  for (int i = 0; i < n; i++) {
    wrong += cost[i] != want[i];
    reached += cost[i] >= 0;
    sum += cost[i];
  }
  printf("%d of %d nodes in %d levels, sum of costs %ld\n", reached, n, levels, sum);
  puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
