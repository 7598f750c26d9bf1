// title: Sobel edges of a byte image: texture version and shared-memory version agree
// features: textures, dynamic_shared_memory, templates

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

typedef unsigned char Pixel;

#define ck(e)                                                                     \
  do {                                                                            \
    if ((e) != cudaSuccess) {                                                     \
      fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(cudaGetLastError())); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

__device__ Pixel computeSobel(Pixel ul, Pixel um, Pixel ur, Pixel ml, Pixel mr, Pixel ll, Pixel lm, Pixel lr, float scale) {
  short horz = ur + 2 * mr + lr - ul - 2 * ml - ll;
  short vert = ul + 2 * um + ur - ll - 2 * lm - lr;
  short sum = (short)(scale * (abs((int)horz) + abs((int)vert)));
  return sum < 0 ? 0 : sum > 0xff ? 0xff : (Pixel)sum;
}

// One block a row; its threads stride along it.
__global__ void sobelTex(Pixel* out, unsigned pitch, int w, int h, float scale, cudaTextureObject_t tex) {
  Pixel* row = out + blockIdx.x * pitch;
  float y = blockIdx.x;
  for (int i = threadIdx.x; i < w; i += blockDim.x) {
    float x = i;
    row[i] = computeSobel(tex2D<Pixel>(tex, x - 1, y - 1), tex2D<Pixel>(tex, x, y - 1), tex2D<Pixel>(tex, x + 1, y - 1),
                          tex2D<Pixel>(tex, x - 1, y), tex2D<Pixel>(tex, x + 1, y), tex2D<Pixel>(tex, x - 1, y + 1),
                          tex2D<Pixel>(tex, x, y + 1), tex2D<Pixel>(tex, x + 1, y + 1), scale);
  }
}

extern __shared__ Pixel tile[];

// A tile with a rim of one pixel; the tile's width is a run-time value, so the memory is dynamic.
__global__ void sobelShared(const Pixel* in, Pixel* out, int w, int h, float scale) {
  int tw = blockDim.x + 2, th = blockDim.y + 2;
  int x0 = blockIdx.x * blockDim.x - 1, y0 = blockIdx.y * blockDim.y - 1;
  for (int k = threadIdx.y * blockDim.x + threadIdx.x; k < tw * th; k += blockDim.x * blockDim.y) {
    int x = min(max(x0 + k % tw, 0), w - 1), y = min(max(y0 + k / tw, 0), h - 1);
    tile[k] = in[y * w + x];
  }
  __syncthreads();
  int x = x0 + 1 + threadIdx.x, y = y0 + 1 + threadIdx.y;
  if (x >= w || y >= h) return;
  const Pixel *t = tile + threadIdx.y * tw + threadIdx.x, *m = t + tw, *b = m + tw;
  out[y * w + x] = computeSobel(t[0], t[1], t[2], m[0], m[2], b[0], b[1], b[2], scale);
}

int main() {
  const int w = 85, h = 41;
  std::vector<Pixel> img(w * h), a(w * h), b(w * h);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      int dx = x - 40, dy = y - 20;
      img[y * w + x] = dx * dx + dy * dy < 180 ? 200 : (x / 7 % 2 ? 60 : 20);
    }
  Pixel *d_in, *d_out;
  ck(cudaMalloc(&d_in, w * h));
  ck(cudaMalloc(&d_out, w * h));
  ck(cudaMemcpy(d_in, img.data(), w * h, cudaMemcpyHostToDevice));
  cudaArray_t arr;
  cudaChannelFormatDesc fmt = cudaCreateChannelDesc<Pixel>();
  ck(cudaMallocArray(&arr, &fmt, w, h));
  ck(cudaMemcpy2DToArray(arr, 0, 0, d_in, w, w, h, cudaMemcpyDeviceToDevice));
  cudaResourceDesc rd = {};
  rd.resType = cudaResourceTypeArray;
  rd.res.array.array = arr;
  cudaTextureDesc td = {};
  td.addressMode[0] = td.addressMode[1] = cudaAddressModeClamp;
  cudaTextureObject_t tex;
  ck(cudaCreateTextureObject(&tex, &rd, &td, NULL));

  const float scale = 0.5f;
  sobelTex<<<h, 64>>>(d_out, w, w, h, scale, tex);
  ck(cudaGetLastError());
  ck(cudaMemcpy(a.data(), d_out, w * h, cudaMemcpyDeviceToHost));
  dim3 block(32, 4);
  sobelShared<<<dim3((w + 31) / 32, (h + 3) / 4), block, (block.x + 2) * (block.y + 2)>>>(d_in, d_out, w, h, scale);
  ck(cudaGetLastError());
  ck(cudaMemcpy(b.data(), d_out, w * h, cudaMemcpyDeviceToHost));

  int bad = 0, edges = 0;
  const int kx[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      int gx = 0, gy = 0;
      for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++) {
          int xx = x + i < 0 ? 0 : x + i > w - 1 ? w - 1 : x + i, yy = y + j < 0 ? 0 : y + j > h - 1 ? h - 1 : y + j;
          gx += kx[j + 1][i + 1] * img[yy * w + xx];
          gy += kx[i + 1][j + 1] * img[yy * w + xx];
        }
      int want = (std::abs(gx) + std::abs(gy)) / 2;
      if (want > 255) want = 255;
      if (a[y * w + x] != want || b[y * w + x] != want) bad++;
      edges += a[y * w + x] > 128;
    }
  printf("%d x %d pixels, %d of them on edges\n", w, h, edges);
  ck(cudaDestroyTextureObject(tex));
  ck(cudaFreeArray(arr));
  ck(cudaFree(d_in));
  ck(cudaFree(d_out));
  puts(bad ? "FAILED" : "PASSED");
  return bad ? 1 : 0;
}
