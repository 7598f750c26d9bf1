// check: sound
// near: uninitialized
// what: a template declares a shared tile that only one of its two variants fills and reads

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <bool staged>
__global__ void reverse(const int* in, int* out) {
  __shared__ int tile[128];
  const int i = threadIdx.x, n = blockDim.x;
  if (staged) {
    tile[i] = in[i];
    __syncthreads();
    out[i] = tile[n - 1 - i];
  } else {
    out[i] = in[n - 1 - i];
  }
}

int main() {
  int host[128], *in, *out;
  for (int i = 0; i < 128; i++) host[i] = i;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, sizeof host));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  reverse<true><<<1, 128>>>(in, out);
  reverse<false><<<1, 128>>>(out, in);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, in, sizeof host, cudaMemcpyDeviceToHost));
  printf("%d %d\n", host[0], host[127]);
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
