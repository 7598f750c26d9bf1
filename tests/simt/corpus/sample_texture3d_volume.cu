// title: A slice and a maximum projection through a volume in a 3-D texture
// features: textures, cuda_arrays, vector_types
// args: 24

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>

using namespace std;
typedef unsigned char uchar;

#define checkCudaErrors(val) checkResult((val), #val, __LINE__)
void checkResult(cudaError_t e, char const* const what, int const line) {
  if (e) {
    cerr << "CUDA error " << cudaGetErrorName(e) << " in line " << line << ": " << what << endl;
    cudaDeviceReset();
    exit(99);
  }
}

// One plane at depth w (normalised), read as floats from 0 to 1.
__global__ void d_slice(uchar* out, uint imageW, uint imageH, float w, cudaTextureObject_t vol) {
  uint x = __umul24(blockIdx.x, blockDim.x) + threadIdx.x;
  uint y = __umul24(blockIdx.y, blockDim.y) + threadIdx.y;
  if (x < imageW && y < imageH) {
    float u = (x + 0.5f) / (float)imageW;
    float v = (y + 0.5f) / (float)imageH;
    float voxel = tex3D<float>(vol, u, v, w);
    out[__umul24(y, imageW) + x] = (uchar)(voxel * 255.0f + 0.5f);
  }
}

// The largest voxel along each ray in z.
__global__ void d_project(uchar* out, uint imageW, uint imageH, int steps, cudaTextureObject_t vol) {
  uint x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= imageW || y >= imageH) return;
  float best = 0.f;
  for (int k = 0; k < steps; k++)
    best = fmaxf(best, tex3D<float>(vol, (x + 0.5f) / imageW, (y + 0.5f) / imageH, (k + 0.5f) / steps));
  out[y * imageW + x] = (uchar)(best * 255.0f + 0.5f);
}

int main(int argc, char* argv[]) {
  const int n = argc > 1 ? atoi(argv[1]) : 24;
  vector<uchar> volume((size_t)n * n * n);
  for (int z = 0; z < n; z++)
    for (int y = 0; y < n; y++)
      for (int x = 0; x < n; x++) volume[(z * n + y) * n + x] = (uchar)((x * x + 3 * y + 5 * z * z + x * y * z) % 251);

  const cudaExtent extent = make_cudaExtent(n, n, n);
  cudaChannelFormatDesc desc = cudaCreateChannelDesc<uchar>();
  cudaArray* array = 0;
  checkCudaErrors(cudaMalloc3DArray(&array, &desc, extent));
  cudaMemcpy3DParms copy = {0};
  copy.srcPtr = make_cudaPitchedPtr(volume.data(), n * sizeof(uchar), n, n);
  copy.dstArray = array;
  copy.extent = extent;
  copy.kind = cudaMemcpyHostToDevice;
  checkCudaErrors(cudaMemcpy3D(&copy));

  cudaResourceDesc texRes = {};
  texRes.resType = cudaResourceTypeArray;
  texRes.res.array.array = array;
  cudaTextureDesc texDescr = {};
  texDescr.normalizedCoords = true;
  texDescr.filterMode = cudaFilterModeLinear;
  for (int i = 0; i < 3; i++) texDescr.addressMode[i] = cudaAddressModeClamp;
  texDescr.readMode = cudaReadModeNormalizedFloat;
  cudaTextureObject_t tex;
  checkCudaErrors(cudaCreateTextureObject(&tex, &texRes, &texDescr, NULL));

  uchar* d_out;
  vector<uchar> slice(n * n), proj(n * n);
  checkCudaErrors(cudaMalloc((void**)&d_out, n * n));
  dim3 threads(8, 8), blocks((n + 7) / 8, (n + 7) / 8);
  const int depth = n / 3;
  d_slice<<<blocks, threads>>>(d_out, n, n, (depth + 1.0f) / n, tex);  // half way between two planes
  checkCudaErrors(cudaGetLastError());
  checkCudaErrors(cudaMemcpy(slice.data(), d_out, n * n, cudaMemcpyDeviceToHost));
  d_project<<<blocks, threads>>>(d_out, n, n, n, tex);
  checkCudaErrors(cudaGetLastError());
  checkCudaErrors(cudaMemcpy(proj.data(), d_out, n * n, cudaMemcpyDeviceToHost));

  int bad = 0;
  long total = 0;
  for (int y = 0; y < n; y++)
    for (int x = 0; x < n; x++) {
      double a = volume[(depth * n + y) * n + x], b = volume[((depth + 1) * n + y) * n + x];
      if (fabs((a + b) / 2 - slice[y * n + x]) > 2.0) bad++;
      int top = 0;
      for (int z = 0; z < n; z++) top = max(top, (int)volume[(z * n + y) * n + x]);
      if (abs(top - (int)proj[y * n + x]) > 1) bad++;
      total += proj[y * n + x];
    }
  cout << "volume " << n << "^3, sum of the projection " << total << endl;
  checkCudaErrors(cudaDestroyTextureObject(tex));
  checkCudaErrors(cudaFreeArray(array));
  checkCudaErrors(cudaFree(d_out));
  cout << (bad ? "FAILED" : "PASSED") << endl;
  return bad ? 1 : 0;
}
