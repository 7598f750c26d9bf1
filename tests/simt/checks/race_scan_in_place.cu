// check: race
// what: a Hillis-Steele scan in one buffer: a thread overwrites what its right neighbours have yet to read
// array: sums

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define N 64

__global__ void scan(const int* in, int* out) {
  __shared__ int sums[N];
  int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int d = 1; d < N; d *= 2) {
    if (t >= d) sums[t] += sums[t - d];  // defect
    __syncthreads();
  }
  out[t] = sums[t];
}

int main() {
  int host[N], *d_in, *d_out;
  for (int i = 0; i < N; i++) host[i] = i;
  CHECK(cudaMalloc(&d_in, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(host)));
  CHECK(cudaMemcpy(d_in, host, sizeof(host), cudaMemcpyHostToDevice));
  scan<<<1, N>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[1], host[N - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
