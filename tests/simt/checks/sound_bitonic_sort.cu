// check: sound
// near: race
// what: in each step of a bitonic sort the lower thread of a pair alone exchanges both elements; a barrier ends the step

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define N 128

__global__ void sort(int* data) {
  __shared__ int s[N];
  int t = threadIdx.x;
  s[t] = data[t];
  for (int size = 2; size <= N; size *= 2)
    for (int distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      int partner = t ^ distance;
      if (partner > t) {
        bool ascending = (t & size) == 0;
        int a = s[t], b = s[partner];
        if ((a > b) == ascending) s[t] = b, s[partner] = a;
      }
    }
  __syncthreads();
  data[t] = s[t];
}

int main() {
  int host[N], *d_data;
  for (int i = 0; i < N; i++) host[i] = i * 57 % 1000;
  CHECK(cudaMalloc(&d_data, sizeof(host)));
  CHECK(cudaMemcpy(d_data, host, sizeof(host), cudaMemcpyHostToDevice));
  sort<<<1, N>>>(d_data);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_data, sizeof(host), cudaMemcpyDeviceToHost));
  printf("%s %d %d\n", std::is_sorted(host, host + N) ? "sorted" : "not sorted", host[0], host[N - 1]);
  CHECK(cudaFree(d_data));
  return 0;
}
