// Surface objects: reads and writes of CUDA arrays at a column in bytes, a row, and a slice or layer.
#pragma once

#include <simt/texture.h>

typedef unsigned long long cudaSurfaceObject_t;
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };

inline cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
  simt::TexturedMemory memory;
  if (resource->resType != cudaResourceTypeArray || !simt::find_textured_memory(*resource, memory))
    return simt::failed(cudaErrorInvalidValue, "a surface object needs a CUDA array");
  if (!(resource->res.array.array->flags & cudaArraySurfaceLoadStore))
    return simt::failed(cudaErrorInvalidValue,
                        "a surface object needs an array that was allocated with cudaArraySurfaceLoadStore");
  *object = (cudaSurfaceObject_t) new simt::TexturedMemory(memory);
  return cudaSuccess;
}
inline cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
  delete (simt::TexturedMemory*)object;
  return cudaSuccess;
}

namespace simt {
// Returns the address of an element of a surface, or null where a read gives 0 and a write does nothing.
SIMT_NO_PROBES inline char* find_surface_element(cudaSurfaceObject_t object, size_t bytes, int x, int y, int z,
                                                 cudaSurfaceBoundaryMode mode, int line) {
  const TexturedMemory& m = *(const TexturedMemory*)object;
  if (bytes != m.element)
    misused("illegal_address", "The type of a surface read or write does not have the size of the array's elements.",
            line);
  if (x % (int)bytes)
    misused("misaligned", "The x of a surface read or write is in bytes and must be a multiple of the element's size.",
            line);
  int at[3] = {x / (int)bytes, y, z};
  for (int i = 0; i < 3; ++i) {
    if (at[i] >= 0 && at[i] < m.size[i]) continue;
    if (mode == cudaBoundaryModeTrap)
      misused("out_of_bounds", "A surface read or write is outside the array. (Its x is in bytes.)", line);
    if (mode == cudaBoundaryModeZero) return nullptr;
    at[i] = apply_address_mode(cudaAddressModeClamp, at[i], m.size[i]);
  }
  return m.data + (size_t)at[2] * m.slice + (size_t)at[1] * m.row + (size_t)at[0] * m.element;
}
template <class T>
SIMT_NO_PROBES T read_surface(cudaSurfaceObject_t object, int x, int y, int z, cudaSurfaceBoundaryMode mode, int line) {
  T value{};
  if (const char* at = find_surface_element(object, sizeof(T), x, y, z, mode, line)) memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
SIMT_NO_PROBES void write_surface(T value, cudaSurfaceObject_t object, int x, int y, int z,
                                  cudaSurfaceBoundaryMode mode, int line) {
  if (char* at = find_surface_element(object, sizeof(T), x, y, z, mode, line)) memcpy(at, &value, sizeof value);
}
}  // namespace simt

#define SIMT_EXPAND(...) __VA_ARGS__
#define SIMT_SURFACE(name, parameters, x, y, z)                                                                    \
  template <class T>                                                                                               \
  SIMT_CALLED T name##read(cudaSurfaceObject_t object, SIMT_EXPAND parameters,                                     \
                           cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, int line = __builtin_LINE()) {     \
    SIMT_CALL;                                                                                                     \
    return simt::read_surface<T>(object, x, y, z, mode, line);                                                     \
  }                                                                                                                \
  template <class T>                                                                                               \
  SIMT_CALLED void name##read(T* value, cudaSurfaceObject_t object, SIMT_EXPAND parameters,                        \
                              cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, int line = __builtin_LINE()) {  \
    SIMT_CALL;                                                                                                     \
    *value = simt::read_surface<T>(object, x, y, z, mode, line);                                                   \
  }                                                                                                                \
  template <class T>                                                                                               \
  SIMT_CALLED void name##write(T value, cudaSurfaceObject_t object, SIMT_EXPAND parameters,                        \
                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap, int line = __builtin_LINE()) { \
    SIMT_CALL;                                                                                                     \
    simt::write_surface<T>(value, object, x, y, z, mode, line);                                                    \
  }
SIMT_SURFACE(surf1D, (int column), column, 0, 0)
SIMT_SURFACE(surf2D, (int column, int row), column, row, 0)
SIMT_SURFACE(surf3D, (int column, int row, int slice), column, row, slice)
SIMT_SURFACE(surf1DLayered, (int column, int layer), column, 0, layer)
SIMT_SURFACE(surf2DLayered, (int column, int row, int layer), column, row, layer)
SIMT_SURFACE(surfCubemap, (int column, int row, int face), column, row, face)
#undef SIMT_SURFACE
#undef SIMT_EXPAND
