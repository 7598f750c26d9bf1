// check: sound
// near: uninitialized
// what: a kernel sets the fields of records with padding one by one, and the next copies them whole and reads each field

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Tagged {
  char tag;
  short kind;
  bool used;
  double value;
};

__global__ void make(Tagged* all, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  all[i].tag = 'a' + i % 26;
  all[i].kind = i;
  all[i].used = i % 2;
  all[i].value = 0.5 * i;
}

__global__ void reverse(const Tagged* all, Tagged* out, int n) {
  int i = threadIdx.x;
  if (i < n) {
    Tagged one = all[n - 1 - i];
    if (one.used && one.kind > 3 && one.tag != 'q') one.value += 1;
    out[i] = one;
  }
}

int main() {
  const int n = 90;
  Tagged *all, *out, host[n];
  CHECK(cudaMalloc(&all, n * sizeof(Tagged)));
  CHECK(cudaMalloc(&out, n * sizeof(Tagged)));
  make<<<1, 96>>>(all, n);
  reverse<<<1, 96>>>(all, out, n);
  reverse<<<1, 96>>>(out, all, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, all, sizeof host, cudaMemcpyDeviceToHost));
  printf("%f\n", host[7].value);
  CHECK(cudaFree(all));
  CHECK(cudaFree(out));
}
