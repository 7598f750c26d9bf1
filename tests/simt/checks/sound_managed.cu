// check: sound
// near: uninitialized
// what: managed memory: the host writes it, the kernel changes it, and after a synchronisation the host reads it

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Account { int balance; char currency; };

__global__ void add_interest(Account* accounts, int n, int percent) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && accounts[i].currency == 'E') accounts[i].balance += accounts[i].balance * percent / 100;
}

int main() {
  const int n = 40;
  Account* accounts;
  CHECK(cudaMallocManaged(&accounts, n * sizeof(Account)));
  for (int i = 0; i < n; i++) {
    accounts[i].balance = 100 * i;
    accounts[i].currency = i % 2 ? 'E' : 'D';
  }
  add_interest<<<2, 32>>>(accounts, n, 3);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  int total = 0;
  for (int i = 0; i < n; i++) total += accounts[i].balance;
  printf("%d\n", total);
  CHECK(cudaFree(accounts));
  return 0;
}
