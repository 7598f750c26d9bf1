// Last in a precompiled header for host code: what nvcc declares there and the C++ compiler does not know, and in place of
// CUDA's functions that take a kernel or a variable in device memory those of gpu/host.h.
#pragma once

// ---- what nvcc declares for host code, and the C++ compiler does not know ----

inline int max(int a, int b) { return a < b ? b : a; }
inline int min(int a, int b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline float max(float a, float b) { return a < b ? b : a; }
inline float min(float a, float b) { return b < a ? b : a; }
inline double max(double a, double b) { return a < b ? b : a; }
inline double min(double a, double b) { return b < a ? b : a; }

// Namespaces that host code may open or rename, though all in them is for kernels.
namespace cooperative_groups {
namespace experimental {}
}  // namespace cooperative_groups
namespace nvcuda {
namespace wmma {
namespace experimental {}
}  // namespace wmma
}  // namespace nvcuda
namespace cub {}
namespace cuda {
namespace std {}
namespace ptx {}
}  // namespace cuda

#define cudaFuncSetAttribute simt::gpu::func_set_attribute
#define cudaFuncSetCacheConfig simt::gpu::func_set_cache_config
#define cudaFuncGetAttributes simt::gpu::func_get_attributes
#define cudaOccupancyMaxActiveBlocksPerMultiprocessor simt::gpu::most_blocks
#define cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags simt::gpu::most_blocks
#define cudaOccupancyMaxPotentialBlockSize simt::gpu::best_block
#define cudaLaunchKernel simt::gpu::launch_kernel
#define cudaLaunchCooperativeKernel simt::gpu::launch_cooperative
#define cudaLaunchKernelEx simt::gpu::launch_extended
#define cudaMemcpyToSymbol simt::gpu::memcpy_to_symbol
#define cudaMemcpyFromSymbol simt::gpu::memcpy_from_symbol
#define cudaMemcpyToSymbolAsync simt::gpu::memcpy_to_symbol_async
#define cudaMemcpyFromSymbolAsync simt::gpu::memcpy_from_symbol_async
#define cudaGetSymbolAddress simt::gpu::get_symbol_address
#define cudaGetSymbolSize simt::gpu::get_symbol_size
#undef __global__
#undef __device__
#undef __constant__
#define __global__
#define __device__
#define __constant__
