// check: sound
// near: uninitialized
// what: `best` has a value also where the window holds no positive element

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void first_positive(const float* x, float* out, int windows, int width) {
  int w = blockIdx.x * blockDim.x + threadIdx.x;
  if (w >= windows) return;
  float best = 0.0f;
  for (int k = 0; k < width; k++)
    if (x[w * width + k] > 0) {
      best = x[w * width + k];
      break;
    }
  out[w] = best;
}

int main() {
  const int windows = 40, width = 4;
  float x[windows * width], out[windows], *d_x, *d_out;
  for (int i = 0; i < windows * width; i++) x[i] = i / width % 4 == 3 ? -1 : i % 3 - 1;
  CHECK(cudaMalloc(&d_x, sizeof(x)));
  CHECK(cudaMalloc(&d_out, sizeof(out)));
  CHECK(cudaMemcpy(d_x, x, sizeof(x), cudaMemcpyHostToDevice));
  first_positive<<<2, 32>>>(d_x, d_out, windows, width);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f\n", out[0], out[1]);
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_out));
  return 0;
}
