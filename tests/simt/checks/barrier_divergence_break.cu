// check: barrier_divergence
// what: each thread leaves the loop with the barrier as soon as its own value has converged

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void collatz_steps(const int* start, int* steps, int* rounds) {
  int t = threadIdx.x, value = start[t], count = 0, round = 0;
  while (true) {
    if (value != 1) {
      value = value % 2 ? 3 * value + 1 : value / 2;
      count++;
    }
    if (value == 1) break;
    __syncthreads();  // defect
    round++;
  }
  steps[t] = count;
  if (t == 0) *rounds = round;
}

int main() {
  const int n = 96;
  int host[n], rounds, *d_start, *d_steps, *d_rounds;
  for (int i = 0; i < n; i++) host[i] = i + 2;
  CHECK(cudaMalloc(&d_start, sizeof(host)));
  CHECK(cudaMalloc(&d_steps, sizeof(host)));
  CHECK(cudaMalloc(&d_rounds, sizeof(int)));
  CHECK(cudaMemcpy(d_start, host, sizeof(host), cudaMemcpyHostToDevice));
  collatz_steps<<<1, n>>>(d_start, d_steps, d_rounds);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_steps, sizeof(host), cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(&rounds, d_rounds, sizeof(int), cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_start));
  CHECK(cudaFree(d_steps));
  CHECK(cudaFree(d_rounds));
  return 0;
}
