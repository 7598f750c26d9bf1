// check: sound
// near: uninitialized
// what: records with padding lie behind a pointer in a struct; their fields are set one by one and read one by one

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Order { short kind; int amount; char grade; };
struct Book { Order* orders; int count; };

__global__ void fill(Book book) {
  for (int i = threadIdx.x; i < book.count; i += blockDim.x) {
    book.orders[i].kind = i % 3;
    book.orders[i].amount = 10 * i;
    book.orders[i].grade = 'a' + i % 5;
  }
}

__global__ void total(Book book, int* sums) {
  for (int i = threadIdx.x; i < book.count; i += blockDim.x)
    if (book.orders[i].grade != 'c') atomicAdd(&sums[book.orders[i].kind], book.orders[i].amount);
}

int main() {
  Book book{nullptr, 70};
  int *sums, host[3];
  CHECK(cudaMalloc(&book.orders, book.count * sizeof(Order)));
  CHECK(cudaMalloc(&sums, sizeof host));
  CHECK(cudaMemset(sums, 0, sizeof host));
  fill<<<1, 32>>>(book);
  total<<<1, 32>>>(book, sums);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, sums, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d %d %d\n", host[0], host[1], host[2]);
  CHECK(cudaFree(book.orders));
  CHECK(cudaFree(sums));
}
