// CUDA arrays: their formats, and the host functions that allocate them and copy to and from them.
#pragma once

#include <type_traits>

#include <simt/cuda_api.h>
#include <simt/half.h>

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3
};
struct cudaChannelFormatDesc {
  int x, y, z, w;  // bits of each channel
  cudaChannelFormatKind f;
};
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void* ptr;
  size_t pitch, xsize, ysize;
};
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) { return {width, height, depth}; }
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t width, size_t height) {
  return {pointer, pitch, width, height};
}

inline constexpr unsigned cudaArrayDefault = 0, cudaArrayLayered = 1, cudaArraySurfaceLoadStore = 2,
                          cudaArrayCubemap = 4, cudaArrayTextureGather = 8;

// Rows of elements without padding; layers and faces follow one another like the slices of a 3-D array.
struct cudaArray {
  cudaChannelFormatDesc format;
  cudaExtent extent;  // as requested: 0 for a dimension that the array does not have
  unsigned flags;
  size_t element;  // bytes
  char* data;

  size_t rows() const { return extent.height ? extent.height : 1; }
  size_t slices() const { return extent.depth ? extent.depth : 1; }
  size_t row_bytes() const { return extent.width * element; }
  size_t slice_bytes() const { return row_bytes() * rows(); }
};
typedef cudaArray* cudaArray_t;
typedef const cudaArray* cudaArray_const_t;

namespace simt {
// The type of a vector's channels and their number.
template <class T>
struct Channels {
  typedef T type;
  static constexpr int count = 1;
};
#define SIMT_CHANNELS(T, name)           \
  template <> struct Channels<name##1> { \
    typedef T type;                      \
    static constexpr int count = 1;      \
  };                                     \
  template <> struct Channels<name##2> { \
    typedef T type;                      \
    static constexpr int count = 2;      \
  };                                     \
  template <> struct Channels<name##4> { \
    typedef T type;                      \
    static constexpr int count = 4;      \
  };
SIMT_CHANNELS(signed char, char)
SIMT_CHANNELS(unsigned char, uchar)
SIMT_CHANNELS(short, short)
SIMT_CHANNELS(unsigned short, ushort)
SIMT_CHANNELS(int, int)
SIMT_CHANNELS(unsigned, uint)
SIMT_CHANNELS(float, float)
#undef SIMT_CHANNELS

inline bool is_format(const cudaChannelFormatDesc& format) {
  const int bits = format.x, count = 1 + (format.y > 0) + (format.z > 0) + (format.w > 0);
  const bool alike =
      (!format.y || format.y == bits) && (!format.z || format.z == bits) && (!format.w || format.w == bits);
  if (!alike || count == 3 || format.f > cudaChannelFormatKindFloat) return false;
  return bits == 32 || bits == 16 || (bits == 8 && format.f != cudaChannelFormatKindFloat);
}
inline size_t element_bytes(const cudaChannelFormatDesc& format) {
  return (size_t)(format.x + format.y + format.z + format.w) / 8;
}
}  // namespace simt

inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  typedef typename simt::Channels<T>::type Channel;
  constexpr int bits = 8 * (int)sizeof(Channel), count = simt::Channels<T>::count;
  constexpr bool is_float = std::is_same_v<Channel, float> || std::is_same_v<Channel, __half>;
  static_assert(is_float || std::is_integral_v<Channel>, "a CUDA array has numbers of 8, 16 or 32 bits");
  return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0,
          is_float                    ? cudaChannelFormatKindFloat
          : std::is_signed_v<Channel> ? cudaChannelFormatKindSigned
                                      : cudaChannelFormatKindUnsigned};
}

SIMT_INLINE cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                                          unsigned flags = 0) {
  if (!simt::is_format(*format))
    return simt::failed(cudaErrorInvalidChannelDescriptor,
                        "a CUDA array has 1, 2 or 4 channels of 8, 16 or 32 bits, all alike");
  if (!extent.width) return simt::failed(cudaErrorInvalidValue, "a CUDA array has a width of at least 1");
  if (flags & cudaArrayCubemap && (extent.width != extent.height || extent.depth % 6))
    return simt::failed(cudaErrorInvalidValue, "a cubemap has square faces and a depth of 6, or a multiple if layered");
  cudaArray made = {*format, extent, flags, simt::element_bytes(*format), nullptr};
  const cudaError_t error = cudaMalloc(&made.data, made.slice_bytes() * made.slices());
  *array = made.data ? new cudaArray(made) : nullptr;
  return error;
}
SIMT_INLINE cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                                        size_t height = 0, unsigned flags = 0) {
  return cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}
inline cudaError_t cudaFreeArray(cudaArray_t array) {
  if (!array) return cudaSuccess;
  const cudaError_t error = cudaFree(array->data);
  delete array;
  return error;
}
inline cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                                    cudaArray_t array) {
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
inline cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  *format = array->format;
  return cudaSuccess;
}

// ---- copies ----

namespace simt {
// One side of a copy in three dimensions: where it begins, and the bytes from row to row and from slice to slice.
struct Side {
  char* start;
  size_t row, slice;
};
SIMT_INLINE cudaError_t copy_rows(const Side& to, const Side& from, size_t width, size_t height, size_t depth,
                                  cudaMemcpyKind kind) {
  synchronize();
  const auto reach = [&](const Side& side) { return (depth - 1) * side.slice + (height - 1) * side.row + width; };
  if (width && height && depth && to.start && from.start)
    if (const char* why = rows_problem("A copy of rows", to.start, reach(to), from.start, reach(from), kind))
      return failed(cudaErrorInvalidValue, why);
  for (size_t z = 0; z < depth; ++z)
    for (size_t y = 0; y < height; ++y)
      if (const cudaError_t error =
              copy(to.start + z * to.slice + y * to.row, from.start + z * from.slice + y * from.row, width, kind))
        return error;
  return cudaSuccess;
}
// Returns the part of an array that a copy names, or an empty side if it does not lie in the array. x: in bytes.
inline Side part_of(cudaArray_const_t array, size_t x, size_t y, size_t z, size_t width, size_t height, size_t depth) {
  if (x + width > array->row_bytes() || y + height > array->rows() || z + depth > array->slices()) return {};
  return {array->data + z * array->slice_bytes() + y * array->row_bytes() + x, array->row_bytes(),
          array->slice_bytes()};
}
inline cudaError_t outside_array() {
  return failed(cudaErrorInvalidValue, "a copy reaches past the end of a CUDA array's row, column or depth");
}
}  // namespace simt

SIMT_INLINE cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind) {
  const simt::Side to = simt::part_of(array, x, y, 0, width, height, 1);
  return to.start ? simt::copy_rows(to, {(char*)source, pitch, 0}, width, height, 1, kind) : simt::outside_array();
}
SIMT_INLINE cudaError_t cudaMemcpy2DFromArray(void* target, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                                              size_t width, size_t height, cudaMemcpyKind kind) {
  const simt::Side from = simt::part_of(array, x, y, 0, width, height, 1);
  return from.start ? simt::copy_rows({(char*)target, pitch, 0}, from, width, height, 1, kind) : simt::outside_array();
}
SIMT_INLINE cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* source,
                                                 size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                                 cudaStream_t = nullptr) {
  return cudaMemcpy2DToArray(array, x, y, source, pitch, width, height, kind);
}
SIMT_INLINE cudaError_t cudaMemcpy2DFromArrayAsync(void* target, size_t pitch, cudaArray_const_t array, size_t x,
                                                   size_t y, size_t width, size_t height, cudaMemcpyKind kind,
                                                   cudaStream_t = nullptr) {
  return cudaMemcpy2DFromArray(target, pitch, array, x, y, width, height, kind);
}
SIMT_INLINE cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t target, size_t to_x, size_t to_y, cudaArray_const_t source,
                                                 size_t x, size_t y, size_t width, size_t height,
                                                 cudaMemcpyKind = cudaMemcpyDeviceToDevice) {
  const simt::Side to = simt::part_of(target, to_x, to_y, 0, width, height, 1);
  const simt::Side from = simt::part_of(source, x, y, 0, width, height, 1);
  if (!to.start || !from.start) return simt::outside_array();
  return simt::copy_rows(to, from, width, height, 1, cudaMemcpyDeviceToDevice);
}

// The deprecated copies of a number of bytes, which go on in the next row.
namespace simt {
inline char* bytes_of(cudaArray_const_t array, size_t x, size_t y, size_t count) {
  const size_t first = y * array->row_bytes() + x;
  return first + count > array->rows() * array->row_bytes() ? nullptr : array->data + first;
}
}  // namespace simt
SIMT_INLINE cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t count,
                                          cudaMemcpyKind kind) {
  char* const to = simt::bytes_of(array, x, y, count);
  return to ? simt::copy_rows({to, count, 0}, {(char*)source, count, 0}, count, 1, 1, kind) : simt::outside_array();
}
SIMT_INLINE cudaError_t cudaMemcpyFromArray(void* target, cudaArray_const_t array, size_t x, size_t y, size_t count,
                                            cudaMemcpyKind kind) {
  char* const from = simt::bytes_of(array, x, y, count);
  return from ? simt::copy_rows({(char*)target, count, 0}, {from, count, 0}, count, 1, 1, kind) : simt::outside_array();
}
SIMT_INLINE cudaError_t cudaMemcpyToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* source, size_t count,
                                               cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpyToArray(array, x, y, source, count, kind);
}
SIMT_INLINE cudaError_t cudaMemcpyFromArrayAsync(void* target, cudaArray_const_t array, size_t x, size_t y,
                                                 size_t count, cudaMemcpyKind kind, cudaStream_t = nullptr) {
  return cudaMemcpyFromArray(target, array, x, y, count, kind);
}
SIMT_INLINE cudaError_t cudaMemcpyArrayToArray(cudaArray_t target, size_t to_x, size_t to_y, cudaArray_const_t source,
                                               size_t x, size_t y, size_t count,
                                               cudaMemcpyKind = cudaMemcpyDeviceToDevice) {
  char* const from = simt::bytes_of(source, x, y, count);
  return from ? cudaMemcpyToArray(target, to_x, to_y, from, count, cudaMemcpyDeviceToDevice) : simt::outside_array();
}

struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;  // in elements if an array takes part, else its width is in bytes
  cudaMemcpyKind kind;
};

namespace simt {
inline Side side_of(cudaArray_t array, const cudaPos& at, const cudaPitchedPtr& memory, size_t element, size_t width,
                    const cudaExtent& extent) {
  if (array) return part_of(array, at.x * element, at.y, at.z, width, extent.height, extent.depth);
  const size_t slice = memory.pitch * memory.ysize;
  return {(char*)memory.ptr + at.z * slice + at.y * memory.pitch + at.x, memory.pitch, slice};
}
}  // namespace simt

SIMT_INLINE cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* p) {
  const size_t element = p->dstArray ? p->dstArray->element : p->srcArray ? p->srcArray->element : 1;
  const size_t width = p->extent.width * element;
  const simt::Side to = simt::side_of(p->dstArray, p->dstPos, p->dstPtr, element, width, p->extent);
  const simt::Side from = simt::side_of(p->srcArray, p->srcPos, p->srcPtr, element, width, p->extent);
  if ((p->dstArray && !to.start) || (p->srcArray && !from.start)) return simt::outside_array();
  return simt::copy_rows(to, from, width, p->extent.height, p->extent.depth, p->kind);
}
SIMT_INLINE cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t = nullptr) {
  return cudaMemcpy3D(parameters);
}
SIMT_INLINE cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent) {
  memory->xsize = extent.width, memory->ysize = extent.height;
  return cudaMallocPitch(&memory->ptr, &memory->pitch, extent.width, extent.height * extent.depth);
}
SIMT_INLINE cudaError_t cudaMemset3D(cudaPitchedPtr memory, int byte, cudaExtent extent) {
  for (size_t z = 0; z < extent.depth; ++z)
    if (const cudaError_t error = cudaMemset2D((char*)memory.ptr + z * memory.pitch * memory.ysize, memory.pitch, byte,
                                               extent.width, extent.height))
      return error;
  return cudaSuccess;
}
