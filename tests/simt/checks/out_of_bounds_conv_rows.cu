// check: out_of_bounds
// what: a 3x3 convolution without padding is computed for every input row, and the last two read rows that are not there
// array: in

#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

__global__ void conv3x3(const float* in, const float* weight, float* out, int height, int width) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width - 2 || y >= height) return;  // should be height - 2
  float sum = 0;
  for (int ky = 0; ky < 3; ky++)
    for (int kx = 0; kx < 3; kx++) {
      float pixel = in[(y + ky) * width + x + kx];  // defect
      sum += weight[ky * 3 + kx] * pixel;
    }
  out[y * (width - 2) + x] = sum;
}

int main() {
  const int height = 18, width = 34;
  std::vector<float> image(height * width, 1.0f), weight(9, 1.0f), out(height * (width - 2));
  float *d_in, *d_weight, *d_out;
  CHECK(cudaMalloc(&d_in, image.size() * sizeof(float)));
  CHECK(cudaMalloc(&d_weight, 9 * sizeof(float)));
  CHECK(cudaMalloc(&d_out, out.size() * sizeof(float)));
  CHECK(cudaMemcpy(d_in, image.data(), image.size() * sizeof(float), cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(d_weight, weight.data(), 9 * sizeof(float), cudaMemcpyHostToDevice));
  conv3x3<<<dim3(2, 3), dim3(16, 8)>>>(d_in, d_weight, d_out, height, width);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), d_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  printf("%.0f\n", out[0]);
  CHECK(cudaFree(d_in));
  CHECK(cudaFree(d_weight));
  CHECK(cudaFree(d_out));
  return 0;
}
