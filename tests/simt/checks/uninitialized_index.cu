// check: uninitialized
// array: places
// what: half of the indices were never copied to the device, and a store follows them out of the output

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void scatter(const int* places, int* out) {
  int t = threadIdx.x;
  int place = places[t];  // defect
  out[place] = t;
}

int main() {
  std::vector<int> host(32);
  for (int i = 0; i < 32; ++i) host[i] = 31 - i;
  int *places, *out;
  CHECK(cudaMalloc(&places, 64 * sizeof(int)));
  CHECK(cudaMalloc(&out, 64 * sizeof(int)));
  CHECK(cudaMemcpy(places, host.data(), 32 * sizeof(int), cudaMemcpyHostToDevice));
  scatter<<<1, 64>>>(places, out);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(places));
  CHECK(cudaFree(out));
}
