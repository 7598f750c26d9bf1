// check: barrier_divergence
// what: a grid-stride loop with a barrier inside, and n is no multiple of the stride: some threads come once more than others

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void chunk_maxima(const int* in, int* out, int n) {
  __shared__ int top;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    if (threadIdx.x == 0) top = 0;
    __syncthreads();  // defect
    atomicMax(&top, in[i]);
    __syncthreads();  // other
    if (threadIdx.x == 0) out[i / blockDim.x] = top;
    __syncthreads();  // other
  }
}

int main() {
  const int n = 300, threads = 64, chunks = (n + threads - 1) / threads;
  std::vector<int> host(n), maxima(chunks);
  for (int i = 0; i < n; i++) host[i] = i * 37 % 101;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, chunks * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  chunk_maxima<<<2, threads>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(maxima.data(), d_out, chunks * sizeof(int), cudaMemcpyDeviceToHost));
  for (int m : maxima) printf("%d ", m);
  printf("\n");
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
