// check: illegal_address
// what: a field of a record in constant memory is used as a counter
// array: settings

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { printf("%s\n", cudaGetErrorString(e)); exit(1); } } while (0)

struct Settings {
  int width;
  int height;
  int calls;
};
__constant__ Settings settings;

__global__ void invert(int* image) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 && y == 0) settings.calls++;  // defect
  if (x < settings.width && y < settings.height) image[y * settings.width + x] ^= 255;
}

int main() {
  Settings host = {20, 10, 0};
  int* image;
  CHECK(cudaMemcpyToSymbol(settings, &host, sizeof host));
  CHECK(cudaMalloc(&image, 200 * sizeof(int)));
  CHECK(cudaMemset(image, 0, 200 * sizeof(int)));
  invert<<<dim3(2, 2), dim3(16, 8)>>>(image);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(image);
}
