// check: sound
// near: misaligned
// what: a template loads 2, 4 or 8 numbers at once through a struct that is aligned to its size, from where that fits

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

template <class T, int N>
struct alignas(sizeof(T) * N) Pack { T values[N]; };

template <int N>
__global__ void add(const float* a, const float* b, float* sum, int n) {
  using Wide = Pack<float, N>;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (N * (i + 1) > n) {
    for (int k = N * i; k < n; k++) sum[k] = a[k] + b[k];
    return;
  }
  Wide x = reinterpret_cast<const Wide*>(a)[i], y = reinterpret_cast<const Wide*>(b)[i];
#pragma unroll
  for (int k = 0; k < N; k++) x.values[k] += y.values[k];
  reinterpret_cast<Wide*>(sum)[i] = x;
}

int main() {
  const int n = 203;
  float host[n], *a, *b, *sum;
  for (int i = 0; i < n; i++) host[i] = i;
  CHECK(cudaMalloc(&a, sizeof host));
  CHECK(cudaMalloc(&b, sizeof host));
  CHECK(cudaMalloc(&sum, sizeof host));
  CHECK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, host, sizeof host, cudaMemcpyHostToDevice));
  add<2><<<2, 64>>>(a, b, sum, n);
  add<4><<<1, 64>>>(a, sum, b, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, b, sizeof host, cudaMemcpyDeviceToHost));
  printf("%f\n", host[n - 1]);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(sum));
}
