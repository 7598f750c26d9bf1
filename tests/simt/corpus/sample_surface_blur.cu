// title: Box filter of an RGBA image: rows through a texture, columns in a pitched buffer, result in a surface
// features: textures, surfaces, pitched_memory, vector_types
// args: 60 44 3

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

#define SAFE(call)                                                                              \
  if (cudaError_t e = (call)) {                                                                 \
    fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(e));                           \
    exit(2);                                                                                    \
  }

typedef unsigned int uint;

__device__ uint packColor(float4 c) {
  return (uint(c.w + 0.5f) << 24) | (uint(c.z + 0.5f) << 16) | (uint(c.y + 0.5f) << 8) | uint(c.x + 0.5f);
}

__host__ __device__ inline float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__host__ __device__ inline void operator-=(float4& a, float4 b) { a.x -= b.x, a.y -= b.y, a.z -= b.z, a.w -= b.w; }
__host__ __device__ inline void operator+=(float4& a, float4 b) { a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w; }
__host__ __device__ inline float4 operator*(float4 a, float s) { return make_float4(a.x * s, a.y * s, a.z * s, a.w * s); }

// One thread a row: the sum of a window slides along. Texels beyond the border repeat the border (clamp).
__global__ void boxRows(cudaTextureObject_t rgba, float4* sums, size_t pitch, int w, int h, int r) {
  int y = blockIdx.x * blockDim.x + threadIdx.x;
  if (y >= h) return;
  float4* row = (float4*)((char*)sums + y * pitch);
  const float scale = 255.0f / (2 * r + 1);
  float4 t = make_float4(0.f, 0.f, 0.f, 0.f);
  for (int x = -r; x <= r; x++) t += tex2D<float4>(rgba, x, y);
  row[0] = t * scale;
  for (int x = 1; x < w; x++) {
    t += tex2D<float4>(rgba, x + r, y);
    t -= tex2D<float4>(rgba, x - r - 1, y);
    row[x] = t * scale;
  }
}

__global__ void boxColumns(const float4* sums, size_t pitch, cudaSurfaceObject_t out, int w, int h, int r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float4 t = make_float4(0.f, 0.f, 0.f, 0.f);
  for (int k = -r; k <= r; k++) {
    int yy = min(max(y + k, 0), h - 1);
    t = t + ((const float4*)((const char*)sums + yy * pitch))[x];
  }
  uint packed = packColor(t * (1.0f / (2 * r + 1)));
  surf2Dwrite(make_uchar4(packed & 255, (packed >> 8) & 255, (packed >> 16) & 255, packed >> 24), out,
              x * sizeof(uchar4), y);
}

int main(int argc, char** argv) {
  int w = argc > 1 ? atoi(argv[1]) : 60, h = argc > 2 ? atoi(argv[2]) : 44, r = argc > 3 ? atoi(argv[3]) : 3;
  std::vector<uchar4> in(w * h), out(w * h);
  for (int i = 0; i < w * h; i++)
    in[i] = make_uchar4(i * 7 % 256, (i / w) * 5 % 256, (i % w) * 4 % 256, 255 - i % 100);

  cudaChannelFormatDesc f = cudaCreateChannelDesc<uchar4>();
  cudaArray_t src, dst;
  SAFE(cudaMallocArray(&src, &f, w, h));
  SAFE(cudaMallocArray(&dst, &f, w, h, cudaArraySurfaceLoadStore));
  SAFE(cudaMemcpy2DToArray(src, 0, 0, in.data(), w * sizeof(uchar4), w * sizeof(uchar4), h, cudaMemcpyHostToDevice));

  cudaResourceDesc rd{};
  rd.resType = cudaResourceTypeArray;
  rd.res.array.array = src;
  cudaTextureDesc td{};
  td.addressMode[0] = td.addressMode[1] = cudaAddressModeClamp;
  td.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t tex;
  SAFE(cudaCreateTextureObject(&tex, &rd, &td, nullptr));
  rd.res.array.array = dst;
  cudaSurfaceObject_t surf;
  SAFE(cudaCreateSurfaceObject(&surf, &rd));

  float4* sums;
  size_t pitch;
  SAFE(cudaMallocPitch((void**)&sums, &pitch, w * sizeof(float4), h));
  boxRows<<<(h + 31) / 32, 32>>>(tex, sums, pitch, w, h, r);
  boxColumns<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(sums, pitch, surf, w, h, r);
  SAFE(cudaGetLastError());
  SAFE(cudaMemcpy2DFromArray(out.data(), w * sizeof(uchar4), dst, 0, 0, w * sizeof(uchar4), h, cudaMemcpyDeviceToHost));

  int off = 0;
  double sums4[4] = {0, 0, 0, 0};
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      double s[4] = {0, 0, 0, 0};
      for (int j = -r; j <= r; j++)
        for (int i = -r; i <= r; i++) {
          int xx = x + i < 0 ? 0 : x + i >= w ? w - 1 : x + i, yy = y + j < 0 ? 0 : y + j >= h ? h - 1 : y + j;
          uchar4 c = in[yy * w + xx];
          s[0] += c.x, s[1] += c.y, s[2] += c.z, s[3] += c.w;
        }
      uchar4 g = out[y * w + x];
      unsigned char got[4] = {g.x, g.y, g.z, g.w};
      for (int k = 0; k < 4; k++) {
        if (fabs(s[k] / ((2 * r + 1) * (2 * r + 1)) - got[k]) > 0.51) off++;
        sums4[k] += got[k];
      }
    }
  printf("mean colour %.1f %.1f %.1f %.1f\n", sums4[0] / (w * h), sums4[1] / (w * h), sums4[2] / (w * h),
         sums4[3] / (w * h));
  SAFE(cudaDestroyTextureObject(tex));
  SAFE(cudaDestroySurfaceObject(surf));
  SAFE(cudaFreeArray(src));
  SAFE(cudaFreeArray(dst));
  SAFE(cudaFree(sums));
  printf("%s\n", off ? "FAILED" : "PASSED");
  return off ? 1 : 0;
}
