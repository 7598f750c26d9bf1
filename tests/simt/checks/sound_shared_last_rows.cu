// check: sound
// near: out_of_bounds
// what: pointers run through static shared arrays in both directions and stop at the ends, which they may point at

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void merge(const int* in, int* out) {
  __shared__ int left[48], right[48], merged[96];
  int t = threadIdx.x;
  if (t < 48) {
    left[t] = in[2 * t];
    right[47 - t] = in[2 * t + 1];
  }
  __syncthreads();
  if (t == 0) {
    const int *a = left, *a_end = left + 48, *b = right + 48;
    for (int* to = merged; to != merged + 96; ++to)
      *to = b == right || (a != a_end && *a <= *(b - 1)) ? *a++ : *--b;
  }
  __syncthreads();
  out[t] = merged[t];
}

int main() {
  int host[96], *in, *out;
  for (int i = 0; i < 96; i++) host[i] = 2 * i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  merge<<<1, 96>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[1], host[95]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
