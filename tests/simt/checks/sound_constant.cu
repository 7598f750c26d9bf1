// check: sound
// near: out_of_bounds
// what: the filter's taps are read from constant memory, which the host wrote with cudaMemcpyToSymbol

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

#define RADIUS 3
__constant__ float taps[2 * RADIUS + 1];

__global__ void filter(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < 2 * RADIUS + 1; k++) {
    int at = i + k - RADIUS;
    float sample = at >= 0 && at < n ? in[at] : 0.0f;
    sum += taps[k] * sample;
  }
  out[i] = sum;
}

int main() {
  const int n = 250;
  const float host_taps[2 * RADIUS + 1] = {1, 2, 3, 4, 3, 2, 1};
  std::vector<float> host(n, 1.0f);
  float *d_in, *d_out;
  CHECK(cudaMemcpyToSymbol(taps, host_taps, sizeof(host_taps)));
  CHECK(cudaMalloc(&d_in, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_in, host.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  filter<<<2, 128>>>(d_in, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", host[0], host[n / 2]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_out));
  return 0;
}
