/* config.h -- everything in the project includes it first */
#ifndef CONFIG_H
#define CONFIG_H

#ifdef USE_DOUBLE
typedef double real;
#define R(x) x
#else
typedef float real;
#define R(x) x##f
#endif

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ABS(a) MAX(a, -(a))
#define BLOCK 64
#define CELLS 1000
#define LEFT R(1.0)
#define RIGHT R(-0.5)

#if defined(_MSC_VER)
#include <windows.h>
#define EXPORT __declspec(dllexport)
#elif defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_runtime.h>
#define EXPORT
#define cudaMalloc hipMalloc
#define cudaMemcpy hipMemcpy
#else
#define EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif
typedef void (*solver)(int cells, int steps, real diffusivity, const real *start, real *end);
EXPORT void solve_explicit(int cells, int steps, real diffusivity, const real *start, real *end);
EXPORT void solve_red_black(int cells, int steps, real diffusivity, const real *start, real *end);
EXPORT void solve_on_host(int red_black, int cells, int steps, real diffusivity, const real *start, real *end);
EXPORT int device_count(void);
#ifdef __cplusplus
}
#endif
#endif
