// check: out_of_bounds
// array: counts
// what: an index is past the end of a shared array, and a later line races: the bad index comes first

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void count(const int* in, int* out) {
  __shared__ int counts[16];
  int t = threadIdx.x;
  if (t < 16) counts[t] = 0;
  __syncthreads();
  int bin = in[t] + 16 * (t == 40);
  if (t == 40) counts[bin] = 1;  // defect
  __syncthreads();
  if (t < 16) out[t] = counts[t];
  __syncthreads();
  if (t < 16) counts[t] = 1;
  if (t == 17) out[16] = counts[0];
}

int main() {
  std::vector<int> host(64);
  for (int i = 0; i < 64; ++i) host[i] = i % 16;
  int *in, *out;
  CHECK(cudaMalloc(&in, 64 * sizeof(int)));
  CHECK(cudaMalloc(&out, 64 * sizeof(int)));
  CHECK(cudaMemcpy(in, host.data(), 64 * sizeof(int), cudaMemcpyHostToDevice));
  count<<<1, 64>>>(in, out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
