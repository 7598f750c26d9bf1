// check: out_of_bounds
// what: the test for a left neighbour is made on an unsigned number, which is never below 0: element 4294967295 is read
// array: heights
// block: (0,0,0)
// thread: (0,0,0)

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void peaks(const float* heights, unsigned char* is_peak, unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float here = heights[i];
  bool peak = true;
  if (i - 1 >= 0) peak = peak && here > heights[i - 1];  // defect
  if (i + 1 < n) peak = peak && here > heights[i + 1];
  is_peak[i] = peak;
}

int main() {
  const unsigned n = 400;
  std::vector<float> heights(n);
  std::vector<unsigned char> is_peak(n);
  for (unsigned i = 0; i < n; i++) heights[i] = i * 7 % 11;
  float* d_heights;
  unsigned char* d_peaks;
  CHECK(cudaMalloc(&d_heights, n * sizeof(float)));
  CHECK(cudaMalloc(&d_peaks, n));
  CHECK(cudaMemcpy(d_heights, heights.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  peaks<<<4, 128>>>(d_heights, d_peaks, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(is_peak.data(), d_peaks, n, cudaMemcpyDeviceToHost));
  int count = 0;
  for (unsigned char p : is_peak) count += p;
  printf("%d peaks\n", count);
  CHECK(cudaFree(d_heights));
  CHECK(cudaFree(d_peaks));
  return 0;
}
