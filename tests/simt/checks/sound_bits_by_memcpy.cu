// check: sound
// near: uninitialized
// what: memcpy turns a float to its bits and back, and copies a struct to shared memory and out again

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Row { float values[6]; };

__global__ void flip_signs(const float* in, float* out) {
  __shared__ Row rows[32];
  int row = threadIdx.x;
  memcpy(&rows[row], in + 6 * row, sizeof(Row));
  __syncthreads();
  Row other;
  std::memcpy(&other, &rows[31 - row], sizeof other);
  for (int k = 0; k < 6; k++) {
    unsigned bits;
    memcpy(&bits, &other.values[k], 4);
    bits ^= 0x80000000u;
    memcpy(&other.values[k], &bits, 4);
  }
  memcpy(out + 6 * row, &other, sizeof other);
}

int main() {
  const int n = 192;
  std::vector<float> host(n);
  for (int i = 0; i < n; i++) host[i] = i % 7;
  float *d_in, *d_out;
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemset(d_out, 0, n * sizeof(float)));
  flip_signs<<<1, 32>>>(d_in, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n - 1]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
