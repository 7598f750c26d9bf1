// check: sound
// near: illegal_address
// what: the nodes of a list are linked by addresses on the device, and its end is a null pointer that nothing follows

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Node {
  int value;
  Node* next;
};

__global__ void add_up(const Node* head, int* sum) {
  int total = 0;
  for (const Node* node = head; node != nullptr; node = node->next) total += node->value;
  *sum = total;
}

int main() {
  const int n = 5;
  Node* nodes;
  int *sum, host;
  CHECK(cudaMalloc(&nodes, n * sizeof(Node)));
  CHECK(cudaMalloc(&sum, sizeof(int)));
  std::vector<Node> copy(n);
  for (int i = 0; i < n; i++) copy[i] = {i, i + 1 < n ? nodes + i + 1 : nullptr};
  CHECK(cudaMemcpy(nodes, copy.data(), n * sizeof(Node), cudaMemcpyHostToDevice));
  add_up<<<1, 1>>>(nodes, sum);
  add_up<<<1, 1>>>(nullptr, sum + 0);
  add_up<<<1, 1>>>(nodes + 2, sum);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&host, sum, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host);
  CHECK(cudaFree(nodes));
  CHECK(cudaFree(sum));
}
