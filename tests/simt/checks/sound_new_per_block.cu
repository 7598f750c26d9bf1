// check: sound
// near: race
// what: a thread allocates memory with new for its block, and all threads fill, read and free it with barriers between

#include <cstdio>
#include <cstdlib>
#include <new>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Counter {
  int value;
  __device__ explicit Counter(int start) : value(start) {}
};

__global__ void rank(const int* in, int* out) {
  __shared__ int* scratch;
  __shared__ alignas(Counter) unsigned char room[sizeof(Counter)];
  int t = threadIdx.x, n = blockDim.x;
  if (t == 0) {
    scratch = new int[n];
    new (room) Counter(0);
  }
  __syncthreads();
  Counter* counter = reinterpret_cast<Counter*>(room);
  scratch[t] = in[blockIdx.x * n + t];
  __syncthreads();
  int smaller = 0;
  for (int k = 0; k < n; k++) smaller += scratch[k] < scratch[t] || (scratch[k] == scratch[t] && k < t);
  atomicAdd(&counter->value, smaller);
  out[blockIdx.x * n + smaller] = scratch[t];
  __syncthreads();
  if (t == 0) {
    if (counter->value != n * (n - 1) / 2) out[0] = -1;
    delete[] scratch;
  }
}

int main() {
  int host[128], *in, *out;
  for (int i = 0; i < 128; i++) host[i] = i * 29 % 31;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  rank<<<2, 64>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[127]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
