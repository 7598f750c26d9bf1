// title: Bicubic B-spline filtering of a texture, with 16 point fetches and with 4 bilinear ones
// features: textures, cuda_arrays, templates

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define gpuErrchk(ans) \
  { gpuAssert((ans), __FILE__, __LINE__); }
inline void gpuAssert(cudaError_t code, const char* file, int line, bool abort = true) {
  if (code != cudaSuccess) {
    fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
    if (abort) exit(code);
  }
}

// weights of the cubic B-spline at fraction a
template <class T>
__host__ __device__ T w0(T a) { return (T(1) / T(6)) * (a * (a * (-a + T(3)) - T(3)) + T(1)); }
template <class T>
__host__ __device__ T w1(T a) { return (T(1) / T(6)) * (a * a * (T(3) * a - T(6)) + T(4)); }
template <class T>
__host__ __device__ T w2(T a) { return (T(1) / T(6)) * (a * (a * (T(-3) * a + T(3)) + T(3)) + T(1)); }
template <class T>
__host__ __device__ T w3(T a) { return (T(1) / T(6)) * (a * a * a); }

__device__ float cubicRow(float x, float c0, float c1, float c2, float c3) {
  return c0 * w0(x) + c1 * w1(x) + c2 * w2(x) + c3 * w3(x);
}

__device__ float fetchBicubic16(cudaTextureObject_t tex, float x, float y) {
  x -= 0.5f;
  y -= 0.5f;
  float px = floorf(x), py = floorf(y);
  float fx = x - px, fy = y - py;
  float rows[4];
  for (int j = 0; j < 4; j++)
    rows[j] = cubicRow(fx, tex2D<float>(tex, px - 0.5f, py + j - 0.5f), tex2D<float>(tex, px + 0.5f, py + j - 0.5f),
                       tex2D<float>(tex, px + 1.5f, py + j - 0.5f), tex2D<float>(tex, px + 2.5f, py + j - 0.5f));
  return cubicRow(fy, rows[0], rows[1], rows[2], rows[3]);
}

// Two bilinear fetches stand for four texels in each direction: the position between the texels carries the ratio.
__device__ float fetchBicubic4(cudaTextureObject_t tex, float x, float y) {
  x -= 0.5f;
  y -= 0.5f;
  float px = floorf(x), py = floorf(y), fx = x - px, fy = y - py;
  float g0x = w0(fx) + w1(fx), g1x = w2(fx) + w3(fx), g0y = w0(fy) + w1(fy), g1y = w2(fy) + w3(fy);
  float h0x = px - 0.5f + w1(fx) / g0x, h1x = px + 1.5f + w3(fx) / g1x;
  float h0y = py - 0.5f + w1(fy) / g0y, h1y = py + 1.5f + w3(fy) / g1y;
  return g0y * (g0x * tex2D<float>(tex, h0x, h0y) + g1x * tex2D<float>(tex, h1x, h0y)) +
         g1y * (g0x * tex2D<float>(tex, h0x, h1y) + g1x * tex2D<float>(tex, h1x, h1y));
}

template <int Fetches>
__global__ void render(cudaTextureObject_t tex, float* out, int w, int h, float zoom) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  float u = x / zoom, v = y / zoom;
  out[y * w + x] = Fetches == 16 ? fetchBicubic16(tex, u, v) : fetchBicubic4(tex, u, v);
}

static double reference(const std::vector<float>& img, int n, double x, double y) {
  x -= 0.5;
  y -= 0.5;
  double px = floor(x), py = floor(y);
  double ax[4] = {w0(x - px), w1(x - px), w2(x - px), w3(x - px)};
  double ay[4] = {w0(y - py), w1(y - py), w2(y - py), w3(y - py)};
  double sum = 0;
  for (int j = 0; j < 4; j++)
    for (int i = 0; i < 4; i++) {
      int cx = (int)px + i - 1, cy = (int)py + j - 1;
      cx = cx < 0 ? 0 : cx > n - 1 ? n - 1 : cx;
      cy = cy < 0 ? 0 : cy > n - 1 ? n - 1 : cy;
      sum += ax[i] * ay[j] * img[cy * n + cx];
    }
  return sum;
}

int main() {
  const int n = 24, zoomed = 72;
  const float zoom = 3.0f;
  std::vector<float> image(n * n), got(zoomed * zoomed);
  for (int i = 0; i < n * n; i++) image[i] = ((i * 37) % 64) / 64.0f;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  gpuErrchk(cudaMallocArray(&array, &format, n, n));
  gpuErrchk(cudaMemcpy2DToArray(array, 0, 0, image.data(), n * 4, n * 4, n, cudaMemcpyHostToDevice));
  cudaTextureObject_t tex[2];
  for (int linear = 0; linear < 2; linear++) {
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    r.res.array.array = array;
    cudaTextureDesc d = {};
    d.addressMode[0] = d.addressMode[1] = cudaAddressModeClamp;
    d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    gpuErrchk(cudaCreateTextureObject(&tex[linear], &r, &d, nullptr));
  }
  float* out;
  gpuErrchk(cudaMalloc(&out, got.size() * sizeof(float)));
  dim3 block(16, 8), grid((zoomed + 15) / 16, (zoomed + 7) / 8);
  bool ok = true;
  for (int version = 0; version < 2; version++) {
    if (version == 0)
      render<16><<<grid, block>>>(tex[0], out, zoomed, zoomed, zoom);
    else
      render<4><<<grid, block>>>(tex[1], out, zoomed, zoomed, zoom);
    gpuErrchk(cudaPeekAtLastError());
    gpuErrchk(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
    double worst = 0, mean = 0;
    for (int y = 0; y < zoomed; y++)
      for (int x = 0; x < zoomed; x++) {
        worst = fmax(worst, fabs(got[y * zoomed + x] - reference(image, n, x / 3.0, y / 3.0)));
        mean += got[y * zoomed + x] / (zoomed * zoomed);
      }
    printf("%2d fetches: mean %.2f\n", version == 0 ? 16 : 4, mean);
    ok = ok && worst < (version == 0 ? 1e-4 : 1e-2);
  }
  for (auto t : tex) gpuErrchk(cudaDestroyTextureObject(t));
  gpuErrchk(cudaFreeArray(array));
  gpuErrchk(cudaFree(out));
  printf("%s\n", ok ? "PASSED" : "FAILED");
  return ok ? 0 : 1;
}
