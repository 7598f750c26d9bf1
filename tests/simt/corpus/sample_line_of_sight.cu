// title: Line of sight: angles along a ray, their running maximum by a scan, visibility
// features: textures, cub, templates
// args: 900

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/block/block_scan.cuh>

#define CUDA(x)                                                                          \
  do {                                                                                   \
    if (cudaError_t e = (x); e != cudaSuccess) {                                         \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e));     \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (0)

struct Bool {  // bytes rather than bool, as they are copied
  unsigned char value;
};

struct Larger {
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Ray {
  float3 origin;
  float2 dir;
  int length;

};

__global__ void computeAngles(Ray ray, float* angles, cudaTextureObject_t heights) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= ray.length) return;
  float x = ray.origin.x + (i + 1) * ray.dir.x, y = ray.origin.y + (i + 1) * ray.dir.y;
  float h = tex2D<float>(heights, x, y);
  angles[i] = (h - ray.origin.z) / (i + 1);  // the tangent grows with the angle
}

// Blocks scan their parts; the maximum of all earlier blocks comes from a second launch.
template <int THREADS>
__global__ void scanMax(const float* in, float* out, float* blockMax, int n) {
  using Scan = cub::BlockScan<float, THREADS>;
  __shared__ typename Scan::TempStorage temp;
  int i = blockIdx.x * THREADS + threadIdx.x;
  float v = i < n ? in[i] : -INFINITY, aggregate;
  Scan(temp).InclusiveScan(v, v, Larger(), aggregate);
  if (i < n) out[i] = v;
  if (threadIdx.x == 0) blockMax[blockIdx.x] = aggregate;
}

__global__ void computeVisibilities(const float* angles, const float* scanned, const float* blockMax, int n, int part, Bool* visible) {
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i >= n) return;
  float before = i % part ? scanned[i - 1] : -INFINITY;
  for (int b = 0; b < i / part; b++) before = fmaxf(before, blockMax[b]);
  visible[i].value = angles[i] > before;
}

int main(int argc, char** argv) {
  const int w = argc > 1 ? std::atoi(argv[1]) : 900, h = 64, threads = 128;
  std::vector<float> terrain(w * h);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) terrain[y * w + x] = (float)((x * 13 + y * 29) % 64) / 4 + (float)(x / 30 * x / 30 % 97);
  cudaChannelFormatDesc fmt = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  CUDA(cudaMallocArray(&array, &fmt, w, h));
  CUDA(cudaMemcpy2DToArray(array, 0, 0, terrain.data(), w * 4, w * 4, h, cudaMemcpyHostToDevice));
  cudaResourceDesc res = {};
  res.resType = cudaResourceTypeArray;
  res.res.array.array = array;
  cudaTextureDesc td = {};
  td.addressMode[0] = td.addressMode[1] = cudaAddressModeClamp;
  td.filterMode = cudaFilterModePoint;
  cudaTextureObject_t tex;
  CUDA(cudaCreateTextureObject(&tex, &res, &td, nullptr));

  Ray ray{make_float3(0.5f, 10.25f, 40.0f), make_float2(1.0f, 1.0f / 32), w - 1};  // exact coordinates
  const int n = ray.length, blocks = (n + threads - 1) / threads;
  float *angles, *scanned, *tops;
  Bool* visible;
  CUDA(cudaMalloc(&angles, n * sizeof(float)));
  CUDA(cudaMalloc(&scanned, n * sizeof(float)));
  CUDA(cudaMalloc(&tops, blocks * sizeof(float)));
  CUDA(cudaMalloc(&visible, n));
  computeAngles<<<blocks, threads>>>(ray, angles, tex);
  scanMax<128><<<blocks, threads>>>(angles, scanned, tops, n);
  computeVisibilities<<<blocks, threads>>>(angles, scanned, tops, n, threads, visible);
  CUDA(cudaGetLastError());
  std::vector<unsigned char> got(n);
  CUDA(cudaMemcpy(got.data(), visible, n, cudaMemcpyDeviceToHost));
  CUDA(cudaDestroyTextureObject(tex));
  CUDA(cudaFreeArray(array));
  CUDA(cudaFree(angles));
  CUDA(cudaFree(scanned));
  CUDA(cudaFree(tops));
  CUDA(cudaFree(visible));

  // On the CPU: a point is visible if no earlier one lies on or above the line to it.
  int wrong = 0, seen = 0, last = -1;
  auto height = [&](int i) {
    int x = std::min((int)(0.5 + i + 1), w - 1), y = std::min((int)(10.25 + (i + 1) / 32.0), h - 1);
    return (double)terrain[y * w + x] - 40.0;
  };
  for (int i = 0; i < n; i++) {
    bool v = true;
    for (int j = 0; j < i && v; j++) v = height(i) * (j + 1) > height(j) * (i + 1);
    wrong += v != (bool)got[i];
    seen += got[i];
    if (got[i]) last = i;
  }
  std::printf("%d of %d points are visible, the last one is %d\n", seen, n, last);
  std::puts(wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
