// check: sound
// near: out_of_bounds
// what: two allocations that lie side by side, each read within its own bounds

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void power(const float* re, const float* im, float* out, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float a = re[i];
    float b = im[i];
    out[i] = a * a + b * b;
  }
}

int main() {
  const int n = 128;  // 512 bytes: the next allocation begins right behind on a GPU
  std::vector<float> re(n), im(n), out(n);
  for (int i = 0; i < n; i++) re[i] = i % 5, im[i] = i % 3;
  float *d_re, *d_im, *d_out;
  CHECK(cudaMalloc(&d_re, n * sizeof(float)));
  CHECK(cudaMalloc(&d_im, n * sizeof(float)));
  CHECK(cudaMalloc(&d_out, n * sizeof(float)));
  CHECK(cudaMemcpy(d_re, re.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_im, im.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  power<<<2, 32>>>(d_re, d_im, d_out, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, n * sizeof(float), cudaMemcpyDeviceToHost));
  float sum = 0;
  for (float v : out) sum += v;
  printf("energy %.0f\n", sum);
  CHECK(cudaFree(d_re));
  CHECK(cudaFree(d_im));
  CHECK(cudaFree(d_out));
  return 0;
}
