// As much of CUDA's runtime as simt/include/gpu/host.h and simt/src/gpu/launch.cpp use. No GPU: each call is printed.
#pragma once

#include <cxxabi.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
typedef struct CUstream_st* cudaStream_t;
typedef struct CUkern_st* cudaKernel_t;
typedef struct CUlib_st* cudaLibrary_t;
enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorInvalidSymbol,
  cudaErrorInvalidDeviceFunction,
  cudaErrorNotReady
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
struct cudaFuncAttributes {
  int maxThreadsPerBlock = 1024;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};

inline const char* name_of(const void* kernel) { return static_cast<const char*>(kernel); }

// Prints a launch with its arguments, whose types the mangled name tells.
inline void print_launch(const char* name, dim3 grid, dim3 block, void** arguments, size_t shared) {
  int status;
  char* whole = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string demangled = whole ? whole : name;
  std::printf("%s <<<%ux%ux%u, %ux%ux%u, %zu>>>", demangled.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z,
              shared);
  std::string types = demangled.substr(demangled.rfind('(') + 1);
  types = types.substr(0, types.find(')'));
  for (size_t i = 0, at = 0; at < types.size(); ++i) {
    const size_t end = std::min(types.find(',', at), types.size());
    std::string type = types.substr(at, end - at);
    if (type[0] == ' ') type = type.substr(1);
    at = end + 1;
    if (type == "int") std::printf(" %d", *static_cast<int*>(arguments[i]));
    if (type == "long") std::printf(" %ld", *static_cast<long*>(arguments[i]));
    if (type == "float") std::printf(" %g", *static_cast<float*>(arguments[i]));
    if (type == "double") std::printf(" %g", *static_cast<double*>(arguments[i]));
    if (type == "bool") std::printf(" %s", *static_cast<bool*>(arguments[i]) ? "true" : "false");
    if (type == "float const*" || type == "float*") std::printf(" [%g]", **static_cast<float**>(arguments[i]));
    if (type == "Pair") std::printf(" {%d}", *static_cast<int*>(arguments[i]));
  }
  std::printf("\n");
  std::free(whole);
}

inline cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, void*, void*, unsigned, void*, void*,
                                       unsigned) {
  *library = (cudaLibrary_t)code;
  return cudaSuccess;
}
inline cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t, const char* name) {
  *kernel = (cudaKernel_t)strdup(name);
  return cudaSuccess;
}
inline cudaError_t cudaLibraryGetGlobal(void** place, size_t* bytes, cudaLibrary_t, const char* name) {
  static char memory[1024];
  std::printf("symbol %s\n", name);
  *place = memory;
  *bytes = sizeof memory;
  return cudaSuccess;
}
inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                    cudaStream_t) {
  print_launch(name_of(kernel), grid, block, arguments, shared);
  return cudaSuccess;
}
inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               size_t shared, cudaStream_t stream) {
  std::printf("cooperative ");
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* kernel, void** arguments) {
  return cudaLaunchKernel(kernel, c->gridDim, c->blockDim, arguments, c->dynamicSmemBytes, c->stream);
}
inline cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute, int value) {
  std::printf("attribute of %s: %d\n", name_of(kernel), value);
  return cudaSuccess;
}
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) { return cudaSuccess; }
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t) {
  *blocks = 1536 / threads;  // so that 768 threads, twice, are the most for the largest block
  return cudaSuccess;
}
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                          size_t shared, unsigned) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, shared);
}
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 10, cudaSuccess; }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
