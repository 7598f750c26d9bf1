// check: sound
// near: out_of_bounds
// what: each thread moves its row one place to the left with memmove and fills the gap with memset

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

constexpr int WIDTH = 12;

__global__ void drop_first(short* rows, int count) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= count) return;
  short* row = rows + r * WIDTH;
  memmove(row, row + 1, (WIDTH - 1) * sizeof(short));
  memset(&row[WIDTH - 1], 0xff, sizeof(short));
  short kept[WIDTH];
  __builtin_memcpy(kept, row, sizeof kept);
  kept[0] += 1;
  __builtin_memcpy(row, kept, sizeof kept);
}

int main() {
  const int n = 70;
  std::vector<short> host(n * WIDTH);
  for (int i = 0; i < n * WIDTH; i++) host[i] = i % 100;
  short* rows;
  CHECK(cudaMalloc(&rows, host.size() * sizeof(short)));
  CHECK(cudaMemcpy(rows, host.data(), host.size() * sizeof(short), cudaMemcpyHostToDevice));
  drop_first<<<3, 32>>>(rows, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), rows, host.size() * sizeof(short), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[WIDTH - 1]);
  CHECK(cudaFree(rows));
}
