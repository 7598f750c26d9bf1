// CUDA's built-in vector types, dim3, and the variables that give a thread its index.
#pragma once

#include <cstddef>
#include <cstdint>

#define SIMT_VECTOR_TYPES(T, name)                                                   \
  struct name##1 { T x; };                                                           \
  struct alignas(2 * sizeof(T)) name##2 { T x, y; };                                 \
  struct name##3 { T x, y, z; };                                                     \
  struct alignas(sizeof(T) * 4 > 16 ? 16 : sizeof(T) * 4) name##4 { T x, y, z, w; }; \
  inline constexpr name##1 make_##name##1(T x) { return {x}; }                       \
  inline constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }               \
  inline constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }       \
  inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

SIMT_VECTOR_TYPES(signed char, char)
SIMT_VECTOR_TYPES(unsigned char, uchar)
SIMT_VECTOR_TYPES(short, short)
SIMT_VECTOR_TYPES(unsigned short, ushort)
SIMT_VECTOR_TYPES(int, int)
SIMT_VECTOR_TYPES(unsigned int, uint)
SIMT_VECTOR_TYPES(long, long)
SIMT_VECTOR_TYPES(unsigned long, ulong)
SIMT_VECTOR_TYPES(long long, longlong)
SIMT_VECTOR_TYPES(unsigned long long, ulonglong)
SIMT_VECTOR_TYPES(float, float)
SIMT_VECTOR_TYPES(double, double)
#undef SIMT_VECTOR_TYPES

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// One block runs on one operating-system thread, so thread-local storage is block-local storage.
// The initial-exec model makes an access one instruction; the runtime library holds the variables.
#define SIMT_TLS __thread __attribute__((tls_model("initial-exec"), visibility("default")))

#ifdef SIMT_PROBED
// Constant for a thread, so that reading them is not probed.
extern const SIMT_TLS uint3 threadIdx;
extern const SIMT_TLS uint3 blockIdx;
extern const SIMT_TLS dim3 blockDim;
extern const SIMT_TLS dim3 gridDim;
namespace simt {
extern SIMT_TLS uint3 thread_index __asm__("threadIdx");
}
#define SIMT_THREAD_INDEX ::simt::thread_index      // the same variable, where the runtime sets it
#else
extern SIMT_TLS uint3 threadIdx;
extern SIMT_TLS uint3 blockIdx;
extern SIMT_TLS dim3 blockDim;
extern SIMT_TLS dim3 gridDim;
#define SIMT_THREAD_INDEX threadIdx
#endif
inline constexpr int warpSize = 32;
