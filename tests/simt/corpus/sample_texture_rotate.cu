// title: Image rotation through a 2-D texture with bilinear filter
// features: textures, cuda_arrays, events
// args: 96 64

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CUDA_CHECK(expr)                                                                        \
  do {                                                                                          \
    cudaError_t err_ = (expr);                                                                  \
    if (err_ != cudaSuccess) {                                                                  \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #expr, cudaGetErrorString(err_)); \
      std::exit(EXIT_FAILURE);                                                                  \
    }                                                                                           \
  } while (0)

// Rotates about the centre. The texture takes normalised coordinates and wraps around.
__global__ void rotateKernel(float* out, int width, int height, float cosine, float sine, cudaTextureObject_t image) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float u = (x + 0.5f) / width - 0.5f;
  float v = (y + 0.5f) / height - 0.5f;
  float tu = u * cosine - v * sine + 0.5f;
  float tv = v * cosine + u * sine + 0.5f;
  out[y * width + x] = tex2D<float>(image, tu, tv);
}

static double sampleWrapped(const std::vector<float>& img, int w, int h, double u, double v) {
  u -= std::floor(u);
  v -= std::floor(v);
  double x = u * w - 0.5, y = v * h - 0.5;
  double fx = std::floor(x), fy = std::floor(y);
  double a = x - fx, b = y - fy;
  auto at = [&](int i, int j) { return (double)img[((j % h + h) % h) * w + ((i % w + w) % w)]; };
  int i = (int)fx, j = (int)fy;
  return (1 - a) * (1 - b) * at(i, j) + a * (1 - b) * at(i + 1, j) + (1 - a) * b * at(i, j + 1) +
         a * b * at(i + 1, j + 1);
}

int main(int argc, char** argv) {
  int width = argc > 1 ? std::atoi(argv[1]) : 96;
  int height = argc > 2 ? std::atoi(argv[2]) : 64;
  const float angle = 0.5f;

  std::vector<float> image(width * height), result(width * height);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image[y * width + x] = 0.5f + 0.25f * ((x / 8 + y / 8) % 2) + 0.002f * (x % 32);

  cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaArray_t array;
  CUDA_CHECK(cudaMallocArray(&array, &format, width, height));
  CUDA_CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * sizeof(float), width * sizeof(float), height,
                                 cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc desc = {};
  desc.addressMode[0] = cudaAddressModeWrap;
  desc.addressMode[1] = cudaAddressModeWrap;
  desc.filterMode = cudaFilterModeLinear;
  desc.readMode = cudaReadModeElementType;
  desc.normalizedCoords = 1;
  cudaTextureObject_t texture = 0;
  CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &desc, nullptr));

  float* d_out = nullptr;
  CUDA_CHECK(cudaMalloc(&d_out, width * height * sizeof(float)));
  cudaEvent_t start, stop;
  CUDA_CHECK(cudaEventCreate(&start));
  CUDA_CHECK(cudaEventCreate(&stop));
  dim3 block(16, 16), grid((width + 15) / 16, (height + 15) / 16);
  CUDA_CHECK(cudaEventRecord(start));
  rotateKernel<<<grid, block>>>(d_out, width, height, cosf(angle), sinf(angle), texture);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaEventRecord(stop));
  CUDA_CHECK(cudaEventSynchronize(stop));
  float ms = 0;
  CUDA_CHECK(cudaEventElapsedTime(&ms, start, stop));
  std::fprintf(stderr, "rotation took %.3f ms\n", ms);
  CUDA_CHECK(cudaMemcpy(result.data(), d_out, width * height * sizeof(float), cudaMemcpyDeviceToHost));

  double worst = 0, sum = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      double u = (x + 0.5) / width - 0.5, v = (y + 0.5) / height - 0.5;
      double c = std::cos((double)angle), s = std::sin((double)angle);
      double want = sampleWrapped(image, width, height, u * c - v * s + 0.5, v * c + u * s + 0.5);
      worst = std::fmax(worst, std::fabs(want - result[y * width + x]));
      sum += result[y * width + x];
    }
  std::printf("rotated %d x %d pixels, mean %.2f\n", width, height, sum / (width * height));

  CUDA_CHECK(cudaEventDestroy(start));
  CUDA_CHECK(cudaEventDestroy(stop));
  CUDA_CHECK(cudaDestroyTextureObject(texture));
  CUDA_CHECK(cudaFreeArray(array));
  CUDA_CHECK(cudaFree(d_out));
  bool ok = worst < 0.01;  // the filter's weights have 8 bits of fraction
  std::printf(ok ? "PASSED\n" : "FAILED\n");
  return ok ? 0 : 1;
}
