// title: fetches at random coordinates, by kind of texture, filter, address modes and kind of coordinates
#include <cstdio>

#define CHECK(call)                                                                \
  do {                                                                             \
    const cudaError_t e = (call);                                                  \
    if (e) return printf("%s: %s\n", #call, cudaGetErrorString(e)), 1;             \
  } while (0)

enum { W = 7, H = 5, D = 4, POINTS = 12 };
enum Kind { linear_1d, plain_2d, plain_3d, layered_1d, layered_2d, cube, kinds };
const char* const names[] = {"1d", "2d", "3d", "1d layered", "2d layered", "cubemap"};

// Returns a number from [0, 1) with 24 random bits.
__device__ float draw(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) * 0x1p-24f;
}

__global__ void fetch(cudaTextureObject_t t, int kind, bool normalized, unsigned seed, float4* out) {
  unsigned state = seed + threadIdx.x * 2654435761u;
  for (int i = 0; i < 4; ++i) draw(state);
  const float u = 3 * draw(state) - 1, v = 3 * draw(state) - 1, w = 3 * draw(state) - 1;
  const float x = normalized ? u : u * W, y = normalized ? v : v * H, z = normalized ? w : w * D;
  const int layer = (int)threadIdx.x % (D + 2) - 1;
  float4 r = {};
  if (kind == linear_1d) r = tex1D<float4>(t, x);
  if (kind == plain_2d) r = tex2D<float4>(t, x, y);
  if (kind == plain_3d) r = tex3D<float4>(t, x, y, z);
  if (kind == layered_1d) r = tex1DLayered<float4>(t, x, layer);
  if (kind == layered_2d) r = tex2DLayered<float4>(t, x, y, layer);
  if (kind == cube) r = texCubemap<float4>(t, u - 0.5f, v - 0.5f, w - 0.5f);
  out[threadIdx.x] = r;
}

// Returns the address mode of an axis: one for all in the first 16 settings, others for each in the last 16.
static cudaTextureAddressMode mode_of(int setting, int axis) {
  return (cudaTextureAddressMode)(setting < 16 ? setting % 4 : (setting + axis * (1 + setting / 4 % 2)) % 4);
}

// Element: the texels' type. component: of a random byte. digits: printed of what comes of a linear filter.
template <class Element, class Part>
int show(const char* what, cudaTextureReadMode read, const char* digits, Part (*component)(unsigned)) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<Element>();
  float4 *out, got[POINTS];
  CHECK(cudaMalloc(&out, sizeof got));
  for (int kind = 0; kind < kinds; ++kind) {
    const bool one = kind == linear_1d || kind == layered_1d, layered = kind == layered_1d || kind == layered_2d;
    const size_t w = kind == cube ? H : W, h = one ? 1 : H;
    const size_t d = kind == cube ? 6 : layered || kind == plain_3d ? D : 1;
    Element texels[6 * H * W];
    unsigned state = 99;
    for (size_t i = 0; i < w * h * d; ++i) {
      Part parts[4];
      for (Part& part : parts) state = state * 1664525u + 1013904223u, part = component(state >> 24);
      texels[i] = {parts[0], parts[1], parts[2], parts[3]};
    }
    cudaArray_t array;
    const bool flat = kind == linear_1d || kind == plain_2d;
    CHECK(cudaMalloc3DArray(&array, &format, make_cudaExtent(w, one ? 0 : h, flat ? 0 : d),
                            (layered ? cudaArrayLayered : 0) | (kind == cube ? cudaArrayCubemap : 0)));
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(texels, w * sizeof(Element), w, h);
    copy.dstArray = array;
    copy.extent = make_cudaExtent(w, h, d);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    for (int setting = 0; setting < 32; ++setting) {
      const bool normalized = setting / 8 % 2, linear = setting / 4 % 2;
      if (kind == cube && (!normalized || setting >= 16)) continue;
      cudaResourceDesc resource = {};
      resource.resType = cudaResourceTypeArray;
      resource.res.array.array = array;
      cudaTextureDesc description = {};
      for (int axis = 0; axis < 3; ++axis) description.addressMode[axis] = mode_of(setting, axis);
      const float border[] = {0.25f, 0.5f, 0.75f, 1};
      for (int i = 0; i < 4; ++i) description.borderColor[i] = border[i];
      description.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
      description.readMode = read;
      description.normalizedCoords = normalized;
      cudaTextureObject_t texture;
      CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
      fetch<<<1, POINTS>>>(texture, kind, normalized, 77 + kind * 16 + setting, out);
      CHECK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
      printf("%s %s filter=%d address=%d%d%d normalized=%d:", what, names[kind], linear, mode_of(setting, 0),
             mode_of(setting, 1), mode_of(setting, 2), normalized);
      for (const float4& v : got)
        for (float x : {v.x, v.w}) printf(linear ? digits : " %.7g", x);
      puts("");
      CHECK(cudaDestroyTextureObject(texture));
    }
    CHECK(cudaFreeArray(array));
  }
  CHECK(cudaFree(out));
  return 0;
}

int main() {
  const auto fraction = cudaReadModeNormalizedFloat;
  return show<float4, float>("float", cudaReadModeElementType, " %.7g", [](unsigned x) { return x * 0.75f - 90; }) ||
         show<uchar4, unsigned char>("uchar", fraction, " %.7g", [](unsigned x) { return (unsigned char)x; }) ||
         show<char4, signed char>("char", fraction, " %.4f", [](unsigned x) { return (signed char)x; }) ||
         show<ushort4, unsigned short>("ushort", fraction, " %.7g",
                                       [](unsigned x) { return (unsigned short)(x * 251); });
}
