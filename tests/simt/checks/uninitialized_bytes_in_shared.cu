// check: uninitialized
// what: three of the four flags in each shared word are set before the word is read
// severity: warning
// array: flags

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void vote(const int* in, int* out) {
  __shared__ alignas(4) unsigned char flags[128];
  int i = threadIdx.x;
  if (i % 4 != 3) flags[i] = in[i] > 0;
  __syncthreads();
  if (i < 32) out[i] = __popc(*reinterpret_cast<unsigned*>(flags + 4 * i));  // defect
}

int main() {
  int host[128], *in, *out;
  for (int i = 0; i < 128; i++) host[i] = i % 3 - 1;
  CHECK(cudaMalloc(&in, sizeof host));
  CHECK(cudaMalloc(&out, 32 * sizeof(int)));
  CHECK(cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice));
  vote<<<1, 128>>>(in, out);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}
