// check: sound
// near: race
// what: one thread keeps the block's range in shared memory for a debugger, and all write the same mark

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Range { int begin, end; };

__global__ void square(const int* in, int* out, int n) {
  __shared__ Range range;
  __shared__ unsigned char seen[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) range = {int(blockIdx.x * blockDim.x), int((blockIdx.x + 1) * blockDim.x)};
  seen[threadIdx.x] = 1;
  __syncthreads();
  seen[(threadIdx.x + 1) % blockDim.x] = 2;
  if (i < n) out[i] = in[i] * in[i];
}

int main() {
  const int n = 500;
  int host[n], *in, *out;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  square<<<2, 256>>>(in, out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d\n", host[499]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
