// check: sound
// near: uninitialized
// what: the alpha bytes of pixels are never set, and no kernel reads them: it reads the others byte by byte

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Pixel { unsigned char r, g, b, a; };

__global__ void paint(Pixel* image, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  Pixel* p = image + y * width + x;
  p->r = 0x7f;
  p->g = 0xc6;
  p->b = x + y;
}

__global__ void to_grey(const Pixel* image, float* grey, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) grey[i] = 0.3f * image[i].r + 0.6f * image[i].g + 0.1f * image[i].b;
}

int main() {
  const int width = 50, height = 20;
  Pixel* image;
  float *grey, host[width * height];
  CHECK(cudaMalloc(&image, width * height * sizeof(Pixel)));
  CHECK(cudaMalloc(&grey, sizeof host));
  paint<<<dim3(4, 3), dim3(16, 8)>>>(image, width, height);
  to_grey<<<8, 128>>>(image, grey, width * height);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(host, grey, sizeof host, cudaMemcpyDeviceToHost));
  printf("%.1f\n", host[999]);
  CHECK(cudaFree(image));
  CHECK(cudaFree(grey));
}
