// title: Write an image to a surface, then read it back through a texture, with 1-D and 3-D surfaces too
// features: surfaces, textures, cuda_arrays

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#define CK(x)                                                                       \
  do {                                                                              \
    cudaError_t rc = (x);                                                           \
    if (rc != cudaSuccess) {                                                        \
      printf("CUDA error %d (%s) in line %d\n", (int)rc, cudaGetErrorName(rc), __LINE__); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

class SurfaceImage {
 public:
  SurfaceImage(int w, int h, int d) : extent_(make_cudaExtent(w, h, d)) {
    cudaChannelFormatDesc desc = cudaCreateChannelDesc<int>();
    if (h == 0)
      CK(cudaMallocArray(&array_, &desc, w, 0, cudaArraySurfaceLoadStore));
    else
      CK(cudaMalloc3DArray(&array_, &desc, extent_, cudaArraySurfaceLoadStore));
    cudaResourceDesc res{};
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array_;
    CK(cudaCreateSurfaceObject(&surface_, &res));
    cudaTextureDesc tex{};
    for (auto& mode : tex.addressMode) mode = cudaAddressModeBorder;
    CK(cudaCreateTextureObject(&texture_, &res, &tex, nullptr));
  }
  ~SurfaceImage() {
    CK(cudaDestroyTextureObject(texture_));
    CK(cudaDestroySurfaceObject(surface_));
    CK(cudaFreeArray(array_));
  }
  SurfaceImage(const SurfaceImage&) = delete;
  SurfaceImage& operator=(const SurfaceImage&) = delete;
  cudaSurfaceObject_t surface() const { return surface_; }
  cudaTextureObject_t texture() const { return texture_; }

 private:
  cudaExtent extent_;
  cudaArray_t array_ = nullptr;
  cudaSurfaceObject_t surface_ = 0;
  cudaTextureObject_t texture_ = 0;
};

__global__ void write1D(cudaSurfaceObject_t s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) surf1Dwrite(i * i, s, i * sizeof(int));
}

__global__ void read1D(cudaTextureObject_t t, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1D<int>(t, i + 0.5f) + tex1D<int>(t, i + 1.5f);  // beyond the end: 0
}

__global__ void write2D(cudaSurfaceObject_t s, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) surf2Dwrite(x + 1000 * y, s, x * sizeof(int), y, cudaBoundaryModeTrap);
}

// Reads three columns left of its own; outside the surface, the mode "zero" gives 0 and "clamp" the border.
__global__ void shift2D(cudaSurfaceObject_t s, int* zero, int* clamp, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  zero[y * w + x] = surf2Dread<int>(s, (x - 3) * (int)sizeof(int), y, cudaBoundaryModeZero);
  clamp[y * w + x] = surf2Dread<int>(s, (x - 3) * (int)sizeof(int), y, cudaBoundaryModeClamp);
}

__global__ void write3D(cudaSurfaceObject_t s, int n) {
  int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
  if (x < n && y < n) surf3Dwrite(x + 10 * y + 100 * z, s, x * sizeof(int), y, z);
}

__global__ void sum3D(cudaSurfaceObject_t s, unsigned long long* total, int n) {
  int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, value;
  surf3Dread(&value, s, x * sizeof(int), y, z);
  atomicAdd(total, (unsigned long long)value);
}

int main() {
  const int n = 100, w = 40, h = 24, c = 8;
  long errors = 0;
  int* buffer;
  CK(cudaMalloc(&buffer, 2 * w * h * sizeof(int)));
  std::vector<int> host(2 * w * h);
  {
    SurfaceImage line(n, 0, 0);
    write1D<<<(n + 31) / 32, 32>>>(line.surface(), n);
    read1D<<<(n + 31) / 32, 32>>>(line.texture(), buffer, n);
    CK(cudaGetLastError());
    CK(cudaMemcpy(host.data(), buffer, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) errors += host[i] != i * i + (i + 1 < n ? (i + 1) * (i + 1) : 0);
    printf("1-D: last value %d\n", host[n - 1]);
  }
  {
    SurfaceImage image(w, h, 0);
    dim3 block(16, 4), grid((w + 15) / 16, (h + 3) / 4);
    write2D<<<grid, block>>>(image.surface(), w, h);
    shift2D<<<grid, block>>>(image.surface(), buffer, buffer + w * h, w, h);
    CK(cudaGetLastError());
    CK(cudaMemcpy(host.data(), buffer, 2 * w * h * sizeof(int), cudaMemcpyDeviceToHost));
    long sums[2] = {0, 0};
    for (int y = 0; y < h; y++)
      for (int x = 0; x < w; x++) {
        errors += host[y * w + x] != (x < 3 ? 0 : x - 3 + 1000 * y);
        errors += host[w * h + y * w + x] != (x < 3 ? 1000 * y : x - 3 + 1000 * y);
        sums[0] += host[y * w + x], sums[1] += host[w * h + y * w + x];
      }
    printf("2-D: sums %ld with zeros, %ld with the border's values\n", sums[0], sums[1]);
  }
  {
    auto cube = std::make_unique<SurfaceImage>(c, c, c);
    unsigned long long *total, got = 0, want = 0;
    CK(cudaMalloc(&total, sizeof *total));
    CK(cudaMemset(total, 0, sizeof *total));
    write3D<<<c, dim3(c, c)>>>(cube->surface(), c);
    sum3D<<<c, dim3(c, c)>>>(cube->surface(), total, c);
    CK(cudaGetLastError());
    CK(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
    CK(cudaFree(total));
    for (int z = 0; z < c; z++)
      for (int y = 0; y < c; y++)
        for (int x = 0; x < c; x++) want += x + 10 * y + 100 * z;
    errors += got != want;
    printf("3-D: sum %llu\n", got);
  }
  CK(cudaFree(buffer));
  printf(errors == 0 ? "PASSED\n" : "FAILED\n");
  return errors == 0 ? 0 : 1;
}
