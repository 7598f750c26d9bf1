// check: race
// what: tiles are loaded two steps ahead into two buffers; that needs three, or a barrier more: the buffer is still being read
// array: buffer

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define B 64

__global__ void window_sums(const int* in, int* out, int steps) {
  __shared__ int buffer[2][B];
  int t = threadIdx.x, sum = 0;
  buffer[0][t] = in[t];
  buffer[1][t] = in[B + t];
  __syncthreads();
  for (int step = 0; step < steps; step++) {
    int now = step % 2;
    sum += buffer[now][(t + 1) % B];  // other
    if (step + 2 < steps) buffer[now][t] = in[(step + 2) * B + t];  // defect
    __syncthreads();
  }
  out[t] = sum;
}

int main() {
  const int steps = 5, n = steps * B;
  std::vector<int> host(n);
  for (int i = 0; i < n; i++) host[i] = i;
  int *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(int)));
  CHECK(cudaMalloc(&d_out, B * sizeof(int)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  window_sums<<<1, B>>>(d_in, d_out, steps);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, B * sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[B - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
