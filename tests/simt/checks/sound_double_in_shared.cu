// check: sound
// near: misaligned
// what: doubles follow the flags in one shared buffer, behind padding up to a multiple of 8

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define ROWS 36

__global__ void masked_products(const double* a, const double* b, double* out) {
  extern __shared__ __align__(16) unsigned char buffer[];
  unsigned char* keep = buffer;
  double* product = (double*)(buffer + (ROWS + 7) / 8 * 8);
  int t = threadIdx.x;
  keep[t] = t % 3 != 0;
  product[t] = a[t] * b[t];
  __syncthreads();
  if (t == 0) {
    double sum = 0;
    for (int k = 0; k < ROWS; k++)
      if (keep[k]) sum += product[k];
    *out = sum;
  }
}

int main() {
  double host[ROWS], *d_a, *d_b, *d_out;
  for (int i = 0; i < ROWS; i++) host[i] = i;
  CHECK(cudaMalloc(&d_a, sizeof(host)));
  CHECK(cudaMalloc(&d_b, sizeof(host)));
  CHECK(cudaMalloc(&d_out, sizeof(double)));
  CHECK(cudaMemcpy(d_a, host, sizeof(host), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_b, host, sizeof(host), cudaMemcpyHostToDevice));
  masked_products<<<1, ROWS, ROWS + 8 + ROWS * sizeof(double)>>>(d_a, d_b, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, d_out, sizeof(double), cudaMemcpyDeviceToHost));
  printf("%.0f\n", host[0]);
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFree(d_out));
  return 0;
}
