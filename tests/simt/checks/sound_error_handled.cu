// check: sound
// near: unchecked_error
// what: a launch with too many threads fails, the program looks at the error and takes smaller blocks instead

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void increment(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i]++;
}

int main() {
  const int n = 2500;
  std::vector<int> host(n, 41);
  int* d_x;
  CHECK(cudaMalloc(&d_x, n * sizeof(int)));
  CHECK(cudaMemcpy(d_x, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (int threads = 4096; threads >= 128; threads /= 2) {
    increment<<<(n + threads - 1) / threads, threads>>>(d_x, n);
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) break;
    printf("%d threads: %s\n", threads, cudaGetErrorName(error));
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(host.data(), d_x, n * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_x));
  return 0;
}
