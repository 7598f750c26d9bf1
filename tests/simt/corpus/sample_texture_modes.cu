// title: The four address modes of a 1-D texture, with both filters
// features: textures, cuda_arrays, templates

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

const int N = 16;         // texels
const int SAMPLES = 160;  // from two lengths left of the texture to two lengths right of it

template <bool Normalized>
__global__ void sweep(cudaTextureObject_t tex, float* out, int samples, int texels) {
  int i = threadIdx.x + blockDim.x * blockIdx.x;
  if (i >= samples) return;
  float x = (i - 64) * 0.5f + 0.25f;  // exact in binary, and so are the filter's weights
  out[i] = tex1D<float>(tex, Normalized ? x / texels : x);
}

// What the programming guide's appendix on texture fetching says, in plain code.
static double texel(const std::vector<float>& t, int i, cudaTextureAddressMode mode) {
  int n = (int)t.size();
  switch (mode) {
    case cudaAddressModeBorder:
      return i < 0 || i >= n ? 0.0 : t[i];
    case cudaAddressModeClamp:
      return t[i < 0 ? 0 : i >= n ? n - 1 : i];
    case cudaAddressModeWrap:
      return t[((i % n) + n) % n];
    default: {
      int k = ((i % (2 * n)) + 2 * n) % (2 * n);
      return t[k < n ? k : 2 * n - 1 - k];
    }
  }
}

static double fetch(const std::vector<float>& t, double x, cudaTextureAddressMode mode, bool linear) {
  if (!linear) return texel(t, (int)std::floor(x), mode);
  double b = x - 0.5;
  int i = (int)std::floor(b);
  double a = b - i;
  return (1 - a) * texel(t, i, mode) + a * texel(t, i + 1, mode);
}

static cudaTextureObject_t makeTexture(cudaArray_t array, cudaTextureAddressMode mode, bool linear, bool normalized) {
  cudaResourceDesc res;
  memset(&res, 0, sizeof(res));
  res.resType = cudaResourceTypeArray;
  res.res.array.array = array;
  cudaTextureDesc td;
  memset(&td, 0, sizeof(td));
  td.addressMode[0] = mode;
  td.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  td.readMode = cudaReadModeElementType;
  td.normalizedCoords = normalized;
  cudaTextureObject_t tex;
  check(cudaCreateTextureObject(&tex, &res, &td, NULL), "cudaCreateTextureObject");
  return tex;
}

int main() {
  std::vector<float> table(N), got(SAMPLES);
  for (int i = 0; i < N; i++) table[i] = (float)((i * 7) % 11);
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  check(cudaMallocArray(&array, &format, N), "cudaMallocArray");
  check(cudaMemcpy2DToArray(array, 0, 0, table.data(), N * sizeof(float), N * sizeof(float), 1, cudaMemcpyHostToDevice),
        "copy to the array");
  float* out;
  check(cudaMalloc((void**)&out, SAMPLES * sizeof(float)), "cudaMalloc");

  struct {
    const char* name;
    cudaTextureAddressMode mode;
    bool normalized;
  } modes[] = {{"clamp", cudaAddressModeClamp, false},
               {"border", cudaAddressModeBorder, false},
               {"clamp, normalised", cudaAddressModeClamp, true},
               {"wrap, normalised", cudaAddressModeWrap, true},
               {"mirror, normalised", cudaAddressModeMirror, true}};
  int wrong = 0;
  for (auto& m : modes)
    for (int linear = 0; linear < 2; linear++) {
      cudaTextureObject_t tex = makeTexture(array, m.mode, linear, m.normalized);
      if (m.normalized)
        sweep<true><<<(SAMPLES + 63) / 64, 64>>>(tex, out, SAMPLES, N);
      else
        sweep<false><<<(SAMPLES + 63) / 64, 64>>>(tex, out, SAMPLES, N);
      check(cudaGetLastError(), "launch");
      check(cudaMemcpy(got.data(), out, SAMPLES * sizeof(float), cudaMemcpyDeviceToHost), "copy back");
      double sum = 0;
      for (int i = 0; i < SAMPLES; i++) {
        double want = fetch(table, (i - 64) * 0.5 + 0.25, m.mode, linear);
        if (std::fabs(want - got[i]) > 1e-3) wrong++;
        sum += got[i];
      }
      printf("%-20s %-6s sum %8.2f, first %.2f, last %.2f\n", m.name, linear ? "linear" : "point", sum, got[0],
             got[SAMPLES - 1]);
      check(cudaDestroyTextureObject(tex), "cudaDestroyTextureObject");
    }
  check(cudaFree(out), "cudaFree");
  check(cudaFreeArray(array), "cudaFreeArray");
  if (wrong) printf("%d samples differ\n", wrong);
  printf("%s\n", wrong ? "FAILED" : "PASSED");
  return wrong ? 1 : 0;
}
