// check: sound
// near: out_of_bounds
// what: each thread builds a list with new, an array with malloc, and frees both

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Node {
  int value;
  Node* next;
  __device__ Node(int v, Node* n) : value(v), next(n) {}
  __device__ virtual int get() const { return value; }
};

__global__ void sum_list(int* out) {
  Node* head = nullptr;
  for (int i = 0; i < 8; ++i) head = new Node(i + threadIdx.x, head);
  int* all = (int*)malloc(8 * sizeof(int));
  int n = 0, sum = 0;
  while (head) {
    Node* next = head->next;
    all[n++] = head->get();
    delete head;
    head = next;
  }
  for (int i = 0; i < n; ++i) sum += all[i];
  free(all);
  out[blockIdx.x * 32 + threadIdx.x] = sum;
}

int main() {
  int host[128], *out;
  CHECK(cudaMalloc(&out, sizeof host));
  sum_list<<<4, 32>>>(out);
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d\n", host[127]);
  CHECK(cudaFree(out));
}
