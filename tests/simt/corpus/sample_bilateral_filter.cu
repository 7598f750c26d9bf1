// title: Bilateral filter: weights of distance in constant memory, image in a texture
// features: textures, constant_memory, vector_types, pitched_memory
// args: 40 30 4

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define CHECK_CUDA(call)                                                          \
  do {                                                                            \
    const cudaError_t error = call;                                               \
    if (error != cudaSuccess) {                                                   \
      printf("Error: %s:%d, ", __FILE__, __LINE__);                               \
      printf("code: %d, reason: %s\n", error, cudaGetErrorString(error));         \
      exit(-10 * error);                                                          \
    }                                                                             \
  } while (0)

__constant__ float cGaussian[64];

__device__ float euclideanLen(float4 a, float4 b, float d) {
  float mod = (b.x - a.x) * (b.x - a.x) + (b.y - a.y) * (b.y - a.y) + (b.z - a.z) * (b.z - a.z);
  return __expf(-mod / (2.f * d * d));
}

__global__ void d_bilateral(float4* od, size_t pitch, int w, int h, float e_d, int r, cudaTextureObject_t rgbaTex) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float sum = 0.0f;
  float4 t = {0.f, 0.f, 0.f, 0.f};
  float4 center = tex2D<float4>(rgbaTex, x, y);
  for (int i = -r; i <= r; i++)
    for (int j = -r; j <= r; j++) {
      float4 curPix = tex2D<float4>(rgbaTex, x + j, y + i);
      float factor = cGaussian[i + r] * cGaussian[j + r] * euclideanLen(curPix, center, e_d);
      t.x += factor * curPix.x;
      t.y += factor * curPix.y;
      t.z += factor * curPix.z;
      sum += factor;
    }
  float4* row = (float4*)((char*)od + y * pitch);
  row[x] = make_float4(t.x / sum, t.y / sum, t.z / sum, 1.f);
}

int main(int argc, char** argv) {
  const int w = argc > 1 ? atoi(argv[1]) : 40, h = argc > 2 ? atoi(argv[2]) : 30;
  const int radius = std::min(argc > 3 ? atoi(argv[3]) : 4, 31);
  const float euclidean_delta = 0.2f, gaussian_delta = 4.0f;
  std::vector<float4> img(w * h), out(w * h);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      float noise = ((x * 92821 + y * 68917) % 1000) / 5000.0f;
      float edge = x > w / 2 ? 0.7f : 0.1f;
      img[y * w + x] = make_float4(edge + noise, 0.5f * edge + noise, y / (float)h, 1.0f);
    }
  float g[64];
  for (int i = 0; i < 2 * radius + 1; i++) {
    float x = (float)(i - radius);
    g[i] = expf(-(x * x) / (2 * gaussian_delta * gaussian_delta));
  }
  CHECK_CUDA(cudaMemcpyToSymbol(cGaussian, g, sizeof(float) * (2 * radius + 1)));

  cudaArray* array;
  cudaChannelFormatDesc desc = cudaCreateChannelDesc<float4>();
  CHECK_CUDA(cudaMallocArray(&array, &desc, w, h));
  CHECK_CUDA(cudaMemcpy2DToArray(array, 0, 0, img.data(), w * sizeof(float4), w * sizeof(float4), h, cudaMemcpyHostToDevice));
  cudaResourceDesc texRes = {};
  texRes.resType = cudaResourceTypeArray;
  texRes.res.array.array = array;
  cudaTextureDesc texDescr = {};
  texDescr.filterMode = cudaFilterModePoint;
  texDescr.addressMode[0] = cudaAddressModeClamp;
  texDescr.addressMode[1] = cudaAddressModeClamp;
  texDescr.readMode = cudaReadModeElementType;
  cudaTextureObject_t tex;
  CHECK_CUDA(cudaCreateTextureObject(&tex, &texRes, &texDescr, NULL));

  float4* d_out;
  size_t pitch;
  CHECK_CUDA(cudaMallocPitch(&d_out, &pitch, w * sizeof(float4), h));
  d_bilateral<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(d_out, pitch, w, h, euclidean_delta, radius, tex);
  CHECK_CUDA(cudaGetLastError());
  CHECK_CUDA(cudaMemcpy2D(out.data(), w * sizeof(float4), d_out, pitch, w * sizeof(float4), h, cudaMemcpyDeviceToHost));

  double worst = 0, mean[3] = {0, 0, 0};
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      double sum = 0, c[3] = {0, 0, 0};
      float4 m = img[y * w + x];
      for (int i = -radius; i <= radius; i++)
        for (int j = -radius; j <= radius; j++) {
          float4 p = img[std::clamp(y + i, 0, h - 1) * w + std::clamp(x + j, 0, w - 1)];
          double d2 = pow((double)p.x - m.x, 2) + pow((double)p.y - m.y, 2) + pow((double)p.z - m.z, 2);
          double f = exp(-(i * i + j * j) / (2.0 * gaussian_delta * gaussian_delta)) *
                     exp(-d2 / (2.0 * euclidean_delta * euclidean_delta));
          sum += f;
          c[0] += f * p.x, c[1] += f * p.y, c[2] += f * p.z;
        }
      float4 o = out[y * w + x];
      worst = std::max({worst, fabs(c[0] / sum - o.x), fabs(c[1] / sum - o.y), fabs(c[2] / sum - o.z)});
      mean[0] += o.x, mean[1] += o.y, mean[2] += o.z;
    }
  printf("radius %d: mean %.2f %.2f %.2f\n", radius, mean[0] / (w * h), mean[1] / (w * h), mean[2] / (w * h));
  CHECK_CUDA(cudaDestroyTextureObject(tex));
  CHECK_CUDA(cudaFreeArray(array));
  CHECK_CUDA(cudaFree(d_out));
  int ok = worst < 1e-4;
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return !ok;
}
