// check: sound
// near: race
// what: threads push to a shared stack by an atomic counter and pop after a barrier, each another place

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void push_and_pop(const int* in, int* out, int* count) {
  __shared__ int stack[64];
  __shared__ int top, popped;
  int t = threadIdx.x;
  if (t == 0) top = popped = 0;
  __syncthreads();
  if (in[t] % 2 == 0) stack[atomicAdd(&top, 1)] = in[t];
  __syncthreads();
  const int pushed = top;
  int sum = 0;
  for (int place; (place = atomicAdd(&popped, 1)) < pushed;) sum += stack[pushed - 1 - place];
  atomicAdd(out, sum);
  if (t == 0) *count = pushed;
}

int main() {
  int host[64], *in, *out, *count;
  for (int i = 0; i < 64; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof(int)));
  CHECK(cudaMalloc(&count, sizeof(int)));
  CHECK(cudaMemset(out, 0, sizeof(int)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  push_and_pop<<<1, 64>>>(in, out, count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof(int), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(host + 1, count, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[1]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaFree(count));
}
