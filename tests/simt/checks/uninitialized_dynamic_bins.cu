// check: uninitialized
// what: a block of 64 threads clears its 100 bins without a loop; the bins from 64 on hold anything
// array: local_bins

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void histogram(const int* values, int n, int* bins, int bin_count) {
  extern __shared__ int local_bins[];
  if (threadIdx.x < bin_count) local_bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local_bins[values[i] % bin_count], 1);  // defect
  __syncthreads();
  for (int b = threadIdx.x; b < bin_count; b += blockDim.x) {
    int count = local_bins[b];  // other
    if (count) atomicAdd(&bins[b], count);
  }
}

int main() {
  const int n = 1000, bin_count = 100;
  std::vector<int> values(n), bins(bin_count);
  for (int i = 0; i < n; i++) values[i] = i * 31 % 997;
  int *d_values, *d_bins;
  CHECK(cudaMalloc(&d_values, n * sizeof(int)));
  CHECK(cudaMalloc(&d_bins, bin_count * sizeof(int)));
  CHECK(cudaMemcpy(d_values, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_bins, 0, bin_count * sizeof(int)));
  histogram<<<2, 64, bin_count * sizeof(int)>>>(d_values, n, d_bins, bin_count);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(bins.data(), d_bins, bin_count * sizeof(int), cudaMemcpyDeviceToHost));
  unsigned total = 0;
  for (int b : bins) total += b;
  printf("%u, first %d, last %d\n", total, bins[0], bins[bin_count - 1]);
  CHECK(cudaFree(d_values));
  CHECK(cudaFree(d_bins));
  return 0;
}
