// check: sound
// near: out_of_bounds
// what: static shared arrays of several types take all 48 KiB of a block, and each is used up to its last element

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Cell { short kind; char mark; };

__global__ void use_all(int* out) {
  __shared__ double values[4000];
  __shared__ Cell cells[3000];
  __shared__ unsigned char flags[5152];
  int t = threadIdx.x, n = blockDim.x;
  for (int i = t; i < 4000; i += n) values[i] = i;
  for (int i = t; i < 3000; i += n) cells[i] = {short(i), 'c'};
  if (t == 0) memset(flags, 1, sizeof flags);
  __syncthreads();
  int sum = 0;
  for (int i = t; i < 5152; i += n) sum += flags[5151 - i];
  sum += int(values[3999 - t]) + cells[2999 - t].kind;
  atomicAdd(out, sum);
}

int main() {
  int *out, host;
  CHECK(cudaMalloc(&out, sizeof(int)));
  CHECK(cudaMemset(out, 0, sizeof(int)));
  use_all<<<2, 128>>>(out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(&host, out, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d\n", host);
  CHECK(cudaFree(out));
}
