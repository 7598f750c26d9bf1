// check: illegal_address
// what: a linked list is copied node by node, but the pointers in the nodes still lead to the host's nodes

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Node {
  int value;
  Node* next;
};

__global__ void add_up(const Node* head, int* sum) {
  int total = 0;
  for (const Node* node = head; node; node = node->next)  // other
    total += node->value;  // defect
  *sum = total;
}

int main() {
  Node* host = nullptr;
  for (int i = 0; i < 5; i++) host = new Node{i, host};
  Node* head;
  int* sum;
  CHECK(cudaMalloc(&head, sizeof(Node)));
  CHECK(cudaMalloc(&sum, sizeof(int)));
  CHECK(cudaMemcpy(head, host, sizeof(Node), cudaMemcpyHostToDevice));
  add_up<<<1, 1>>>(head, sum);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(head);
  cudaFree(sum);
}
