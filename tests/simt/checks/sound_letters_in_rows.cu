// check: sound
// near: race
// what: arrays named x, y and c of a template kernel named g are filled by rows, with a barrier before other rows read them

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <class T>
__global__ void g(const T* m, T* r) {
  __shared__ T x[8][8], y[8];
  volatile __shared__ int c;
  const int a = threadIdx.x, b = threadIdx.y;
  if (a + b == 0) c = 0;
  x[b][a] = m[8 * b + a];
  __syncthreads();
  if (b == 0) {
    T v = 0;
    for (int k = 0; k < 8; k++) v += x[a][k];
    y[a] = v;
  }
  __syncthreads();
  r[8 * b + a] = x[a][b] / (y[a] + c);
}

int main() {
  float host[64], *m, *r;
  for (int k = 0; k < 64; k++) host[k] = k + 1;
  CHECK(cudaMalloc(&m, sizeof host));
  CHECK(cudaMalloc(&r, sizeof host));
  CHECK(cudaMemcpy(m, host, sizeof host, cudaMemcpyHostToDevice));
  g<<<1, dim3(8, 8)>>>(m, r);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, r, sizeof host, cudaMemcpyDeviceToHost));
  printf("%f\n", host[9]);
  CHECK(cudaFree(m));
  CHECK(cudaFree(r));
}
