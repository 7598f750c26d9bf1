// check: misaligned
// what: an edge list's pairs are read as int2 from the second int on, where the list has a count in front
// array: graph

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void degrees(const int* graph, int* degree) {
  int edges = graph[0], e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  int2 edge = ((const int2*)(graph + 1))[e];  // defect
  atomicAdd(&degree[edge.x], 1);
  atomicAdd(&degree[edge.y], 1);
}

int main() {
  const int nodes = 10, edges = 40;
  std::vector<int> graph(1 + 2 * edges), degree(nodes);
  graph[0] = edges;
  for (int e = 0; e < edges; e++) graph[1 + 2 * e] = e % nodes, graph[2 + 2 * e] = e * e % nodes;
  int *d_graph, *d_degree;
  CHECK(cudaMalloc(&d_graph, graph.size() * sizeof(int)));
  CHECK(cudaMalloc(&d_degree, nodes * sizeof(int)));
  CHECK(cudaMemcpy(d_graph, graph.data(), graph.size() * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_degree, 0, nodes * sizeof(int)));
  degrees<<<2, 32>>>(d_graph, d_degree);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(degree.data(), d_degree, nodes * sizeof(int), cudaMemcpyDeviceToHost));
  for (int d : degree) printf("%d ", d);
  printf("\n");
  CHECK(cudaFree(d_graph));
  CHECK(cudaFree(d_degree));
  return 0;
}
