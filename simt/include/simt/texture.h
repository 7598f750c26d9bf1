// Texture objects, as the CUDA programming guide's appendix "Texture Fetching" defines them: address modes, element and
// normalized reads, nearest and linear filtering with weights of 8 fractional bits. What the guide leaves open is as an
// H200 does it (tests/simt/hardware/textures.cu): how weights are multiplied, 16 bits of filtered integers, the border.
#pragma once

#include <math.h>
#include <string.h>

#include <type_traits>

#include <simt/cuda_arrays.h>
#include <simt/probe.h>

enum cudaTextureAddressMode {
  cudaAddressModeWrap = 0,
  cudaAddressModeClamp = 1,
  cudaAddressModeMirror = 2,
  cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaResourceType {
  cudaResourceTypeArray = 0,
  cudaResourceTypeMipmappedArray = 1,
  cudaResourceTypeLinear = 2,
  cudaResourceTypePitch2D = 3
};
struct cudaResourceDesc {
  cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned maxAnisotropy;
  cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization, seamlessCubemap;
};
typedef unsigned long long cudaTextureObject_t;

namespace simt {
// What an object refers to. size: in elements; 1 for a dimension that it does not have.
struct TexturedMemory {
  char* data;
  cudaChannelFormatDesc format;
  size_t element, row, slice;  // bytes
  int size[3];
};
struct Texture {
  cudaResourceDesc resource;
  cudaTextureDesc description;
  TexturedMemory memory;
};

inline bool find_textured_memory(const cudaResourceDesc& resource, TexturedMemory& memory) {
  if (resource.resType == cudaResourceTypeArray && resource.res.array.array) {
    const cudaArray& a = *resource.res.array.array;
    memory = {a.data,        a.format,        a.element,
              a.row_bytes(), a.slice_bytes(), {(int)a.extent.width, (int)a.rows(), (int)a.slices()}};
  } else if (resource.resType == cudaResourceTypeLinear && resource.res.linear.devPtr) {
    const auto& from = resource.res.linear;
    if (!is_format(from.desc)) return false;
    const size_t element = element_bytes(from.desc);
    memory = {(char*)from.devPtr, from.desc,        element,
              from.sizeInBytes,   from.sizeInBytes, {(int)(from.sizeInBytes / element), 1, 1}};
  } else if (resource.resType == cudaResourceTypePitch2D && resource.res.pitch2D.devPtr) {
    const auto& from = resource.res.pitch2D;
    if (!is_format(from.desc) || from.pitchInBytes % 32) return false;
    memory = {(char*)from.devPtr,
              from.desc,
              element_bytes(from.desc),
              from.pitchInBytes,
              from.pitchInBytes * from.height,
              {(int)from.width, (int)from.height, 1}};
  } else {
    return false;
  }
  return true;
}

// Returns the index that an address mode makes of an index outside [0, size), or -1 for the border's color.
SIMT_NO_PROBES inline int apply_address_mode(cudaTextureAddressMode mode, int i, int size) {
  if (i >= 0 && i < size) return i;
  if (mode == cudaAddressModeBorder) return -1;
  if (mode == cudaAddressModeClamp) return i < 0 ? 0 : size - 1;
  const int period = mode == cudaAddressModeWrap ? size : 2 * size, within = (i % period + period) % period;
  return within < size ? within : period - 1 - within;
}

// Returns a coordinate's floor as an int; what is no number or too large for one becomes an index outside.
SIMT_NO_PROBES inline int floor_index(double x) {
  const double whole = floor(x);
  return whole >= 1e9 ? 1000000000 : whole > -1e9 ? (int)whole : -1000000000;
}

// Returns what 1 stands for where integers of so many bits are read as fractions.
SIMT_NO_PROBES inline float fraction_unit(const cudaChannelFormatDesc& format, int bits) {
  return (float)((1u << (format.f == cudaChannelFormatKindUnsigned ? bits : bits - 1)) - 1);
}

// Returns one channel of the element at an address: as it is, or scaled to [0, 1] or [-1, 1]. As a double it is what a
// filter takes: with more digits, and -128 of 8 bits is still below -1.
template <class C>
SIMT_NO_PROBES C read_channel(const char* element, const cudaChannelFormatDesc& format, int channel, bool scaled) {
  constexpr bool filtered = std::is_same_v<C, double>;
  typedef std::conditional_t<filtered, double, float> Fraction;
  const char* at = element + channel * (format.x / 8);
  if (format.f == cudaChannelFormatKindFloat) {
    if (format.x == 16) {
      __half half;
      memcpy(&half, at, sizeof half);
      return (C)__half2float(half);
    }
    float value;
    memcpy(&value, at, sizeof value);
    return (C)value;
  }
  unsigned bits = 0;
  memcpy(&bits, at, (size_t)format.x / 8);
  if (format.f == cudaChannelFormatKindUnsigned)
    return scaled ? (C)((Fraction)bits / (Fraction)fraction_unit(format, format.x)) : (C)bits;
  const int unused = 32 - format.x, value = (int)(bits << unused) >> unused;
  if (!scaled) return (C)value;
  const Fraction fraction = (Fraction)value / (Fraction)fraction_unit(format, format.x);
  return (C)(fraction < -1 && !filtered ? -1 : fraction);
}

// Returns a channel of the border's color, which a texture of integers can hold only as one of its own values.
template <class C>
SIMT_NO_PROBES C read_border(const Texture& texture, int channel) {
  const cudaChannelFormatDesc& format = texture.memory.format;
  const float color = texture.description.borderColor[channel];
  if (format.f == cudaChannelFormatKindFloat || texture.description.readMode != cudaReadModeNormalizedFloat)
    return (C)color;
  const float unit = fraction_unit(format, format.x), least = format.f == cudaChannelFormatKindUnsigned ? 0 : -1;
  return (C)(rintf((color < least ? least : color > 1 ? 1 : color) * unit) / unit);
}

// Returns one channel of the element at an index, where -1 is the border. Channels that the format lacks are 0.
template <class C>
SIMT_NO_PROBES C read_texel(const Texture& texture, const int* index, int channel) {
  const TexturedMemory& m = texture.memory;
  const int channels = (int)(m.element * 8) / m.format.x;
  if (index[0] < 0 || index[1] < 0 || index[2] < 0) return read_border<C>(texture, channel);
  if (channel >= channels) return (C)0;
  return read_channel<C>(m.data + (size_t)index[2] * m.slice + (size_t)index[1] * m.row + (size_t)index[0] * m.element,
                         m.format, channel, texture.description.readMode == cudaReadModeNormalizedFloat);
}

// Where a fetch reads in one dimension: two neighbours, and how much of the second one in 1/256. Nearest: nothing.
struct Neighbours {
  int index[2], weight;
};
SIMT_NO_PROBES inline Neighbours find_neighbours(const cudaTextureDesc& d, int dimension, float coordinate, int size) {
  cudaTextureAddressMode mode = d.addressMode[dimension];
  double x = coordinate;
  if (d.normalizedCoords)
    x *= size;
  else if (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)
    mode = cudaAddressModeClamp;  // these modes need normalized coordinates
  if (d.filterMode == cudaFilterModePoint) {
    const int i = apply_address_mode(mode, floor_index(x), size);
    return {{i, i}, 0};
  }
  x -= 0.5;
  if (mode == cudaAddressModeClamp) x = x < 0 ? 0 : x > size - 1 ? size - 1 : x;  // not only its two indices
  const int i = floor_index(x);
  const double fraction = x - floor(x);
  const int weight = fraction >= 0 ? (int)rint(fraction * 256) : 0;
  return {{apply_address_mode(mode, i, size), apply_address_mode(mode, i + 1, size)}, weight};
}

// The weights of the eight corners in 1/256, by [z][y][x]. Products are rounded to weights in such a way that the sum
// stays 256: x and z first, then y.
struct CornerWeights {
  int at[2][2][2];
  SIMT_NO_PROBES explicit CornerWeights(const Neighbours* in) {
    const int x = in[0].weight, y = in[1].weight, z = in[2].weight, both = (x * z + 128) >> 8;
    const int planes[2][2] = {{256 - x - z + both, x - both}, {z - both, both}};
    for (int k = 0; k < 2; ++k)
      for (int i = 0; i < 2; ++i) {
        const int half_up = (planes[k][i] * y + 128) >> 8, half_down = (planes[k][i] * y + 127) >> 8;
        at[k][1][i] = i ? half_up : half_down;
        at[k][0][i] = planes[k][i] - at[k][1][i];
      }
  }
};

// Returns one channel between the neighbours of a fetch: the sum of the corners by their weights. What comes of integers
// that are read as fractions has 16 bits.
SIMT_NO_PROBES inline float filter(const Texture& texture, const Neighbours* in, int channel) {
  const CornerWeights weights(in);
  double sum = 0;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 2; ++j)
      for (int i = 0; i < 2; ++i) {
        const int index[3] = {in[0].index[i], in[1].index[j], in[2].index[k]};
        if (weights.at[k][j][i]) sum += weights.at[k][j][i] * read_texel<double>(texture, index, channel);
      }
  if (texture.memory.format.f == cudaChannelFormatKindFloat) return (float)(sum / 256);
  const double unit = fraction_unit(texture.memory.format, 16);
  const double steps = floor(sum / 256 * unit + 0.5 + 1e-9);  // a little more, so that halves are not lost
  return (float)(steps < -unit ? -1 : steps / unit);
}

// Fetches a value of type T at the coordinates of `dimensions` dimensions. slice: of a layered texture, else -1.
template <class T>
SIMT_NO_PROBES T fetch(cudaTextureObject_t object, int dimensions, float x, float y, float z, int slice) {
  typedef typename Channels<T>::type C;
  const Texture& texture = *(const Texture*)object;
  const cudaTextureDesc& d = texture.description;
  const float at[3] = {x, y, z};
  Neighbours in[3] = {{{0, 0}, 0}, {{0, 0}, 0}, {{0, 0}, 0}};
  // A texture with one dimension is a row in a plane, at y = 0: a linear filter mixes it with the border beside it.
  const int used = dimensions == 1 && slice < 0 ? 2 : dimensions;
  for (int i = 0; i < used; ++i) in[i] = find_neighbours(d, i, at[i], texture.memory.size[i]);
  if (slice >= 0) in[2] = {{slice, slice}, 0};
  const int index[3] = {in[0].index[0], in[1].index[0], in[2].index[0]};
  C channels[Channels<T>::count];
  for (int c = 0; c < Channels<T>::count; ++c)
    channels[c] = d.filterMode == cudaFilterModePoint ? read_texel<C>(texture, index, c) : (C)filter(texture, in, c);
  T value;
  memcpy(&value, channels, sizeof channels);
  return value;
}

// Returns the layer that a fetch reads; a negative number is the last one's, as a large one is.
SIMT_NO_PROBES inline int clamp_layer(cudaTextureObject_t object, int layer, int dimension) {
  const int layers = ((const Texture*)object)->memory.size[dimension];
  return layer >= 0 && layer < layers ? layer : layers - 1;
}

// Returns the face of a cubemap that a direction points to, and the coordinates on it in [0, 1].
SIMT_NO_PROBES inline int find_face(float x, float y, float z, float& u, float& v) {
  const float ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
  int face;
  float major, s, t;
  if (ax >= ay && ax >= az) {
    face = x >= 0 ? 0 : 1, major = ax, s = x >= 0 ? -z : z, t = -y;
  } else if (ay >= az) {
    face = y >= 0 ? 2 : 3, major = ay, s = x, t = y >= 0 ? z : -z;
  } else {
    face = z >= 0 ? 4 : 5, major = az, s = z >= 0 ? x : -x, t = -y;
  }
  u = (s / major + 1) / 2, v = (t / major + 1) / 2;
  return face;
}

// Fetches from a cubemap, or from one layer of several.
template <class T>
SIMT_NO_PROBES T fetch_face(cudaTextureObject_t object, float x, float y, float z, int layer) {
  const Texture& texture = *(const Texture*)object;
  float u, v;
  const int face = find_face(x, y, z, u, v);
  if (!texture.description.normalizedCoords)  // a direction has no unit
    u *= (float)texture.memory.size[0], v *= (float)texture.memory.size[1];
  return fetch<T>(object, 2, u, v, 0, clamp_layer(object, 6 * layer + face, 2));
}
}  // namespace simt

inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                           const cudaTextureDesc* description, const void* view = nullptr) {
  simt::Texture made = {*resource, *description, {}};
  const cudaTextureDesc& d = *description;
  if (!simt::find_textured_memory(*resource, made.memory))
    return simt::failed(cudaErrorInvalidValue,
                        "a texture object needs a CUDA array, linear memory, or rows with a pitch of a multiple of 32");
  if (view || d.sRGB || d.maxAnisotropy > 1)
    return simt::failed(cudaErrorNotSupported, "simt has no resource views, sRGB and anisotropy of textures");
  const cudaChannelFormatDesc& format = made.memory.format;
  const bool is_float = format.f == cudaChannelFormatKindFloat;
  if (d.readMode == cudaReadModeNormalizedFloat && !is_float && format.x == 32)
    return simt::failed(cudaErrorInvalidNormSetting, "cudaReadModeNormalizedFloat needs integers of 8 or 16 bits");
  if (d.filterMode == cudaFilterModeLinear && !is_float && d.readMode == cudaReadModeElementType)
    return simt::failed(cudaErrorInvalidFilterSetting,
                        "cudaFilterModeLinear needs floats, or cudaReadModeNormalizedFloat");
  *object = (cudaTextureObject_t) new simt::Texture(made);
  return cudaSuccess;
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  delete (simt::Texture*)object;
  return cudaSuccess;
}
inline cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t object) {
  *resource = ((simt::Texture*)object)->resource;
  return cudaSuccess;
}
inline cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description, cudaTextureObject_t object) {
  *description = ((simt::Texture*)object)->description;
  return cudaSuccess;
}

// ---- in kernels ----

template <class T>
SIMT_CALLED SIMT_NO_PROBES T tex1Dfetch(cudaTextureObject_t object, int i) {
  SIMT_CALL;
  const simt::Texture& texture = *(const simt::Texture*)object;
  const int index[3] = {i >= 0 && i < texture.memory.size[0] ? i : -1, 0, 0};
  typename simt::Channels<T>::type channels[simt::Channels<T>::count];
  for (int c = 0; c < simt::Channels<T>::count; ++c)
    channels[c] = simt::read_texel<typename simt::Channels<T>::type>(texture, index, c);
  T value;
  memcpy(&value, channels, sizeof channels);
  return value;
}
template <class T>
SIMT_CALLED T tex1D(cudaTextureObject_t object, float x) {
  SIMT_CALL;
  return simt::fetch<T>(object, 1, x, 0, 0, -1);
}
template <class T>
SIMT_CALLED T tex2D(cudaTextureObject_t object, float x, float y) {
  SIMT_CALL;
  return simt::fetch<T>(object, 2, x, y, 0, -1);
}
template <class T>
SIMT_CALLED T tex3D(cudaTextureObject_t object, float x, float y, float z) {
  SIMT_CALL;
  return simt::fetch<T>(object, 3, x, y, z, -1);
}
template <class T>
SIMT_CALLED T tex1DLayered(cudaTextureObject_t object, float x, int layer) {
  SIMT_CALL;
  return simt::fetch<T>(object, 1, x, 0, 0, simt::clamp_layer(object, layer, 2));
}
template <class T>
SIMT_CALLED T tex2DLayered(cudaTextureObject_t object, float x, float y, int layer) {
  SIMT_CALL;
  return simt::fetch<T>(object, 2, x, y, 0, simt::clamp_layer(object, layer, 2));
}
template <class T>
SIMT_CALLED T texCubemap(cudaTextureObject_t object, float x, float y, float z) {
  SIMT_CALL;
  return simt::fetch_face<T>(object, x, y, z, 0);
}
template <class T>
SIMT_CALLED T texCubemapLayered(cudaTextureObject_t object, float x, float y, float z, int layer) {
  SIMT_CALL;
  return simt::fetch_face<T>(object, x, y, z, layer);
}
// The form that stores the value through a pointer.
#define SIMT_STORED(name, parameters, ...)                                              \
  template <class T>                                                                    \
  SIMT_CALLED void name(T* value, cudaTextureObject_t object, SIMT_EXPAND parameters) { \
    SIMT_CALL;                                                                          \
    *value = name<T>(object, __VA_ARGS__);                                              \
  }
#define SIMT_EXPAND(...) __VA_ARGS__
SIMT_STORED(tex1Dfetch, (int i), i)
SIMT_STORED(tex1D, (float x), x)
SIMT_STORED(tex2D, (float x, float y), x, y)
SIMT_STORED(tex3D, (float x, float y, float z), x, y, z)
SIMT_STORED(tex1DLayered, (float x, int layer), x, layer)
SIMT_STORED(tex2DLayered, (float x, float y, int layer), x, y, layer)
SIMT_STORED(texCubemap, (float x, float y, float z), x, y, z)
SIMT_STORED(texCubemapLayered, (float x, float y, float z, int layer), x, y, z, layer)
#undef SIMT_EXPAND
#undef SIMT_STORED
