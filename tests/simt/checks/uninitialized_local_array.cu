// check: uninitialized
// what: a thread adds to its four accumulators without having set them to zero
// array: acc

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void channel_sums(const float* pixels, int n, const int* order, float* out) {
  float acc[4];
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    for (int c = 0; c < 4; c++) acc[order[c]] += pixels[4 * i + c];  // defect
  for (int c = 0; c < 4; c++) out[4 * threadIdx.x + c] = acc[c];
}

int main() {
  const int n = 96, threads = 32;
  const int order[4] = {2, 1, 0, 3};
  std::vector<float> pixels(4 * n), out(4 * threads);
  for (int i = 0; i < 4 * n; i++) pixels[i] = i % 4;
  float *d_pixels, *d_out;
  int* d_order;
  CHECK(cudaMalloc(&d_pixels, pixels.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_order, sizeof(order)));
  CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_pixels, pixels.data(), pixels.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_order, order, sizeof(order), cudaMemcpyHostToDevice));
  channel_sums<<<1, threads>>>(d_pixels, n, d_order, d_out);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f %.0f %.0f %.0f\n", out[0], out[1], out[2], out[3]);
  CHECK(cudaFree(d_pixels));
  CHECK(cudaFree(d_order));
  CHECK(cudaFree(d_out));
  return 0;
}
