// check: race
// what: one thread sets a flag in shared memory plainly while others read it; that they read it volatile orders nothing
// array: found

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void search(const float* in, float* out) {
  __shared__ int found;
  int t = threadIdx.x;
  if (t == 0) found = 0;
  __syncthreads();
  if (t == 40) found = in[t] > 7 ? 2 : 3;  // other
  int seen = *(volatile int*)&found;  // defect
  if (t < 40) atomicAdd(out + blockIdx.x, seen > 5);
}

int main() {
  const int blocks = 6, n = 64 * blocks;
  float host[n], *d_in, *d_out;
  for (int i = 0; i < n; i++) host[i] = i * 37 % 101;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, sizeof(host)));
  search<<<blocks, 64>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f\n", host[0], host[1], host[64]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
