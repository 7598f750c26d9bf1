#pragma once

#include <cmath>
#include <cuda_runtime.h>

#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif

template <typename T>
struct vec3 {
  T x, y, z;
  HD vec3() : x(0), y(0), z(0) {}
  HD vec3(T x, T y, T z) : x(x), y(y), z(z) {}
  HD explicit vec3(const float4 &v) : x(v.x), y(v.y), z(v.z) {}
  HD vec3 &operator+=(const vec3 &o) {
    x += o.x;
    y += o.y;
    z += o.z;
    return *this;
  }
  HD friend vec3 operator+(vec3 a, const vec3 &b) { return a += b; }
  HD friend vec3 operator*(T s, const vec3 &v) { return {s * v.x, s * v.y, s * v.z}; }
  HD friend vec3 operator-(const vec3 &a, const vec3 &b) { return a + T(-1) * b; }
  HD friend T dot(const vec3 &a, const vec3 &b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
};

template <typename T>
HD T length(const vec3<T> &v) {
  return sqrt(dot(v, v));
}
