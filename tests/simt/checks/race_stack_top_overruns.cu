// check: race
// array: top
// what: threads push to a shared stack whose top they raise without an atomic operation, and the last line pops past it

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void push_and_pop(const int* in, int* out) {
  __shared__ int stack[32];
  __shared__ int top;
  int t = threadIdx.x;
  if (t == 0) top = 0;
  __syncthreads();
  if (in[t] % 2 == 0) {
    int place = top;  // defect
    top = place + 1;  // other
    stack[place % 32] = in[t];
  }
  __syncthreads();
  if (t == 0) out[0] = stack[top + 31];
}

int main() {
  int host[64], *in, *out;
  for (int i = 0; i < 64; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof(int)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  push_and_pop<<<1, 64>>>(in, out);
  cudaDeviceSynchronize();
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
