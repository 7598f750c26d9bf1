// check: race
// what: dynamic shared memory named d is read as soon as the neighbour may be writing it, in a kernel named v
// array: d

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void v(const int* i, int* o, int n) {
  extern __shared__ int d[];
  int j = threadIdx.y * blockDim.x + threadIdx.x;
  d[j] = i[j];  // other
  o[j] = d[(j + 40) % n];  // defect
}

int main() {
  const int n = 128;
  int host[n], *i, *o;
  for (int k = 0; k < n; k++) host[k] = k * k;
  CHECK(cudaMalloc(&i, sizeof host));
  CHECK(cudaMalloc(&o, sizeof host));
  CHECK(cudaMemcpy(i, host, sizeof host, cudaMemcpyHostToDevice));
  v<<<1, dim3(16, 8), n * sizeof(int)>>>(i, o, n);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(i));
  CHECK(cudaFree(o));
}
